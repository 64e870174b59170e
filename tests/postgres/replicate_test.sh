#!/usr/bin/env bash
# Values on their way to another server:  replicate_test.sh BINDING LIBRARIES
# By logical replication, also of tables without a key (REPLICA IDENTITY FULL), where the subscriber
# looks for the row by equality; by pg_dump, as text and packed; and by a binary COPY.
. "$(dirname "$0")/server.sh"

server_start "$2" wal_level=logical
publisher=$PGHOST
server_start "$2" wal_level=logical
subscriber=$PGHOST

on() { # on SERVER SQL: the answer
    psql -qXAt -v ON_ERROR_STOP=1 -h "$1" -c "SET client_min_messages = warning" -c "$2"
}

content='SELECT id, length(filter::bytea), md5(filter::bytea::text) FROM kept ORDER BY 1, 2, 3'

# arrives WHAT: waits until the subscriber has what the publisher has.
arrives() {
    local wanted
    wanted=$(on "$publisher" "$content") || exit 1
    for _ in $(seq 600); do
        [ "$(on "$subscriber" "$content")" != "$wanted" ] || return 0
        sleep 0.1
    done
    echo "$1: has not arrived"
    on "$subscriber" "$content" | diff <(echo "$wanted") -
    tail -n 20 "$server_tree/log"
    exit 1
}

for server in "$publisher" "$subscriber"; do
    on "$server" "CREATE EXTENSION perhaps;
        CREATE TABLE kept (id int, filter perhaps);
        ALTER TABLE kept REPLICA IDENTITY FULL" || exit 1
done
# Small and large ones, a null, and rows that differ in the filter alone, or not at all.
on "$publisher" "
    INSERT INTO kept SELECT i, perhaps_add(perhaps_create(100, 0.01), i) FROM generate_series(1, 20) i;
    INSERT INTO kept SELECT 50, perhaps_create(30000, 0.001, seed => i) FROM generate_series(1, 3) i;
    INSERT INTO kept VALUES (60, NULL), (70, perhaps_create(100, 0.01)), (70, perhaps_create(100, 0.01));
    CREATE PUBLICATION filters FOR TABLE kept" || exit 1
on "$subscriber" "CREATE SUBSCRIPTION filters
    CONNECTION 'host=$publisher port=$PGPORT user=$PGUSER dbname=$PGDATABASE'
    PUBLICATION filters" || exit 1
arrives "the copy"
on "$publisher" "UPDATE kept SET filter = perhaps_add(filter, 'new') WHERE id < 10"
arrives "an update"
on "$publisher" "UPDATE kept SET filter = perhaps_add(filter, 'new')
    WHERE filter = perhaps_create(30000, 0.001, seed => 2)"
arrives "an update of one of three rows with this id"
on "$publisher" "UPDATE kept SET id = id + 1000 WHERE id >= 10"
arrives "an update that leaves the filters"
on "$publisher" "DELETE FROM kept WHERE ctid = (SELECT min(ctid) FROM kept WHERE id = 1070)"
arrives "a removal of one of two equal rows"
on "$publisher" "DELETE FROM kept WHERE id > 1015 OR id < 5"
arrives "removals"
on "$publisher" "INSERT INTO kept SELECT 99, perhaps_build(i, 0.001) FROM generate_series(1, 5000) i"
arrives "a new row"
[ "$(on "$publisher" "SELECT count(*) FROM kept")" = 12 ] || { echo "not 12 rows"; exit 1; }
on "$subscriber" "DROP SUBSCRIPTION filters" || exit 1

# Dumps: what is restored has the same bytes, and an index that takes them.
on "$publisher" "CREATE INDEX kept_filter ON kept USING hash (filter)" || exit 1
for format in plain custom; do
    on "$subscriber" "DROP TABLE kept; DROP EXTENSION perhaps" || exit 1
    pg_dump -h "$publisher" --format "$format" --no-publications -f "$server_tree/dump" || exit 1
    if [ "$format" = plain ]; then
        psql -qX -v ON_ERROR_STOP=1 -h "$subscriber" -f "$server_tree/dump" >/dev/null || exit 1
    else
        pg_restore --exit-on-error -h "$subscriber" -d "$PGDATABASE" "$server_tree/dump" || exit 1
    fi
    arrives "a dump ($format)"
    [ "$(on "$subscriber" "SELECT count(*) FROM pg_indexes WHERE indexname = 'kept_filter'")" = 1 ] ||
        { echo "the index was not restored"; exit 1; }
done

on "$subscriber" "TRUNCATE kept" || exit 1
psql -qX -h "$publisher" -c "COPY kept TO STDOUT WITH (FORMAT binary)" |
    psql -qX -v ON_ERROR_STOP=1 -h "$subscriber" -c "COPY kept FROM STDIN WITH (FORMAT binary)" || exit 1
arrives "a binary COPY"
