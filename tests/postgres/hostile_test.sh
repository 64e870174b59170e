#!/usr/bin/env bash
# Hostile values: each of thousands of damaged filters is an error or a filter, as text, as bytes
# and in a binary COPY, and the server lives:
#     hostile_test.sh BINDING LIBRARIES
# Also: each golden file is a value, and each of those that this version would write so has just
# its bytes.
. "$(dirname "$0")/server.sh"

golden=$(cd "$(dirname "$0")/../golden" && pwd)
server_start "$2" restart_after_crash=off
mkdir "$server_tree/data/golden"
cp "$golden"/*.perhaps "$server_tree/data/golden/"
for file in "$golden"/small/*.perhaps; do
    cp "$file" "$server_tree/data/golden/small-${file##*/}"
done
chmod -R a+rX "$server_tree/data/golden"

[ "${PERHAPS_TEST_SEED:=20}" != fresh ] || PERHAPS_TEST_SEED=$SRANDOM
echo "PERHAPS_TEST_SEED=$PERHAPS_TEST_SEED"
seed=$((PERHAPS_TEST_SEED % 1000)) # of setseed(), which takes -1 to 1
psql -qX -v ON_ERROR_STOP=1 -v seed="${seed#-}" <<'SQL' || exit 1
SET client_min_messages = warning;
CREATE EXTENSION perhaps;
CREATE TABLE golden AS
    SELECT name, pg_read_binary_file('golden/' || name) AS bytes FROM pg_ls_dir('golden') name;
CREATE TABLE taken (name text, filter perhaps);
CREATE TABLE outcomes (way text, state text, n bigint DEFAULT 1, PRIMARY KEY (way, state));

-- Tries to make a filter of the bytes, and to use it.
CREATE FUNCTION attempt(way text, bytes bytea) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    filter perhaps;
BEGIN
    IF way = 'text' THEN
        filter := bytes::text::perhaps;
    ELSIF way = 'bytes' THEN
        filter := bytes::perhaps;
    ELSE -- one row of one column, in the format of COPY
        PERFORM lo_put(1, 0, '\x5047434f50590aff0d0a00' || '\x0000000000000000'::bytea ||
                       '\x0001'::bytea || int4send(length(bytes)) || bytes || '\xffff');
        PERFORM lo_truncate(lo_open(1, 131072), length(bytes) + 27);
        PERFORM lo_export(1, current_setting('data_directory') || '/hostile');
        COPY taken (filter) FROM PROGRAM 'cat hostile' WITH (FORMAT binary);
        SELECT t.filter INTO filter FROM taken t WHERE t.name IS NULL;
        DELETE FROM taken WHERE name IS NULL;
    END IF;
    PERFORM filter @> 'a', filter @> 1, perhaps_info(filter), filter | filter;
    BEGIN
        PERFORM perhaps_add(filter, ARRAY['a', 'b']);
    EXCEPTION WHEN feature_not_supported OR program_limit_exceeded OR invalid_parameter_value THEN
    END;
    RETURN 'a filter';
EXCEPTION WHEN OTHERS THEN
    RETURN SQLSTATE;
END $$;
CREATE FUNCTION note(way text, state text) RETURNS void LANGUAGE sql AS $$
    INSERT INTO outcomes VALUES (way, state)
        ON CONFLICT ON CONSTRAINT outcomes_pkey DO UPDATE SET n = outcomes.n + 1 $$;

-- Golden files are values with these bytes.
DO $$
DECLARE
    g record;
BEGIN
    FOR g IN SELECT * FROM golden LOOP
        IF g.name LIKE 'small-%' AND
           (g.bytes::perhaps::bytea <> g.bytes OR g.bytes::text::perhaps::bytea <> g.bytes) THEN
            RAISE '% is not the same as a value', g.name;
        END IF;
        IF perhaps_info(g.bytes::perhaps)->>'keys' IS NULL THEN
            RAISE '% has no keys', g.name;
        END IF;
    END LOOP;
END $$;

-- Cut, longer, and with changed bytes: one, several, and whole words, most of them in the header.
SELECT setseed(:seed / 1000.0), lo_create(1);
DO $$
DECLARE
    g record; bytes bytea; way text; n int; at int;
BEGIN
    FOR g IN SELECT * FROM golden WHERE length(golden.bytes) < 13000 ORDER BY name LOOP
        n := length(g.bytes);
        FOR i IN 1 .. 120 LOOP
            bytes := g.bytes;
            IF i % 4 = 0 THEN
                bytes := substr(bytes, 1, (random() * n)::int) || substr(bytes, 1, i % 3);
            ELSE
                FOR j IN 1 .. i % 4 LOOP
                    at := floor(random() * CASE WHEN i % 5 < 3 THEN least(n, 300) ELSE n END);
                    bytes := set_byte(bytes, at, get_byte(bytes, at) # (1 << (i + j) % 8));
                END LOOP;
            END IF;
            way := CASE WHEN i % 11 = 0 THEN 'copy' WHEN i % 2 = 0 THEN 'text' ELSE 'bytes' END;
            PERFORM note(way, attempt(way, bytes));
        END LOOP;
        FOREACH way IN ARRAY ARRAY['text', 'bytes', 'copy'] LOOP
            IF attempt(way, g.bytes) NOT IN ('a filter', '54000', '0A000') THEN
                RAISE '% as %: %', g.name, way, attempt(way, g.bytes);
            END IF;
        END LOOP;
    END LOOP;
END $$;
TABLE outcomes ORDER BY way, state;
-- Nothing but what says so: not a filter, another version, damaged, or cut text and messages.
DO $$
BEGIN
    IF (SELECT sum(n) FROM outcomes WHERE state NOT IN ('22P03', '0A000', 'XX001')) > 0 THEN
        RAISE 'unexpected errors';
    END IF;
    IF (SELECT count(DISTINCT way) FROM outcomes WHERE state = 'XX001') <> 3 THEN
        RAISE 'too little was tried';
    END IF;
END $$;
SQL
! grep -E 'terminated by signal|PANIC|AddressSanitizer|runtime error' "$server_tree/log"
