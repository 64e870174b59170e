#!/usr/bin/env bash
# Runs the examples:  readme_test.sh BINDING LIBRARIES
# Those of the README, in its order, and examples/signup.sql, which is then asked whether it is
# right: while addresses come, go and change, and while shards become full.
. "$(dirname "$0")/server.sh"

binding=$1
server_start "$2"
run() { psql -qX -v ON_ERROR_STOP=1 "$@"; }

sed -n '/^```sql$/,/^```$/{/^```/d;p}' "$binding/README.md" >"$server_tree/readme.sql"
[ "$(grep -c ';' "$server_tree/readme.sql")" -gt 10 ] || { echo "no examples"; exit 1; }
run -f "$server_tree/readme.sql" >"$server_tree/out" || exit 1
grep -q '^ t *| f *$' "$server_tree/out" || { cat "$server_tree/out"; exit 1; }

run -c "CREATE DATABASE signup" || exit 1
export PGDATABASE=signup
run -f - <<'SQL' || exit 1
SET client_min_messages = warning;
CREATE EXTENSION perhaps;
CREATE TABLE users (email text PRIMARY KEY);
INSERT INTO users SELECT 'user' || i || '@example.com' FROM generate_series(1, 5000) i;
SQL
# With fewer shards, so that one of them becomes full sooner.
sed 's/65536/4096/g; s/65535/4095/g' "$binding/examples/signup.sql" >"$server_tree/signup.sql"
run -f "$server_tree/signup.sql" || exit 1
run -f - <<'SQL' || exit 1
CREATE FUNCTION lost() RETURNS bigint LANGUAGE sql AS $$
    SELECT count(*) FROM users LEFT JOIN taken ON shard = perhaps_shard(email, 4096)
    WHERE (filter @> email) IS NOT TRUE OR NOT is_taken(email) $$;
DO $$
DECLARE
    n int;
BEGIN
    ASSERT lost() = 0, 'after the beginning';
    ASSERT (SELECT count(*) FROM taken) = 4096, 'shards';
    INSERT INTO users VALUES ('new@example.com');
    ASSERT is_taken('new@example.com') AND NOT is_taken('nobody@example.com'), 'one comes';
    INSERT INTO users SELECT 'user' || i || '@example.com' FROM generate_series(5001, 12000) i;
    ASSERT lost() = 0, 'many come';
    DELETE FROM users WHERE email LIKE 'user1%';
    ASSERT lost() = 0, 'many go';
    UPDATE users SET email = 'x' || email WHERE email LIKE '%7@example.com';
    UPDATE users SET email = email;
    ASSERT lost() = 0, 'many change';
    -- One shard gets many more than it has room for.
    INSERT INTO users SELECT e FROM generate_series(1, 700000) i, LATERAL (SELECT 'y' || i) y(e)
        WHERE perhaps_shard(e, 4096) = 17;
    ASSERT lost() = 0, 'a shard becomes full';
    ASSERT (SELECT (perhaps_info(filter)->>'capacity')::int FROM taken WHERE shard = 17) > 300, 'it grew';
    -- What is not there is certainly not, but for one in a thousand.
    SELECT count(*) INTO n FROM generate_series(1, 20000) i, LATERAL (SELECT 'z' || i) z(e)
        JOIN taken ON shard = perhaps_shard(e, 4096) WHERE filter @> e;
    ASSERT n < 90, n;
END $$;
SQL

# What the command line noted of --ignore-case holds here, too, and not for integers.
command=$2/../../bin/perhaps
if [ -x "$command" ]; then
    printf 'Foo\nBAR\n' | "$command" build -q --ignore-case -n 100 -p 1e-9 -o - | od -An -v -tx1 | tr -d ' \n' \
        >"$server_tree/noted"
    chmod 644 "$server_tree/noted"
    run -v hex="$(cat "$server_tree/noted")" -f - <<'SQL' || exit 1
CREATE TEMP TABLE noted AS SELECT decode(:'hex', 'hex')::perhaps AS f;
UPDATE noted SET f = perhaps_add(perhaps_add(f, ARRAY['New', 'x']), 5208208757389214273::bigint);
DO $$
BEGIN
    ASSERT (SELECT f @> 'FOO'::text AND f @> 'bar'::varchar AND f @> 'fOO'::bytea AND f @> 'nEW'::text FROM noted);
    ASSERT (SELECT f @> 5208208757389214273 AND NOT f @> 7523094288207667809 FROM noted);
    ASSERT (SELECT NOT f @> 'fo'::text FROM noted);
END $$;
SQL
fi
