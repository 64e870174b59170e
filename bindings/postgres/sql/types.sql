-- The type: its text and bytes, what is refused, and what values are keys.
CREATE EXTENSION perhaps;

-- The text is that of the bytes, and gives the same value again.
CREATE TABLE filters AS
    SELECT 'small' AS name, perhaps_add(perhaps_create(100, 0.01), ARRAY['a', 'b']) AS filter
    UNION ALL SELECT 'large', perhaps_build(i, 0.001, 100000) FROM generate_series(1, 100000) i;
SELECT name, filter::text::perhaps::bytea = filter::bytea AS text,
       filter::bytea::perhaps::bytea = filter::bytea AS bytes,
       left(filter::text, 18) AS begins, length(filter::bytea) AS length
    FROM filters ORDER BY name DESC;
SELECT pg_column_size(filter) = length(filter::bytea) AS is_not_compressed FROM filters
    WHERE name = 'large';

-- COPY as text and as binary, out and in.
CREATE TABLE again (LIKE filters);
SELECT current_setting('data_directory') || '/perhaps_regress.copy' AS file \gset
COPY filters TO :'file';
COPY again FROM :'file';
COPY filters TO :'file' WITH (FORMAT binary);
COPY again FROM :'file' WITH (FORMAT binary);
SELECT count(*), count(DISTINCT filter::bytea) FROM again;

-- What is no filter is refused.
SELECT 'abc'::perhaps;
SELECT ''::perhaps;
SELECT '\x'::perhaps;
SELECT '\x1'::perhaps;
SELECT '\xzz'::perhaps;
SELECT '\x706572686170730a'::perhaps;
SELECT '\x00'::bytea::perhaps;
SELECT ('\x' || repeat('00', 5000))::perhaps;
SELECT substr(filter::bytea, 1, 200)::perhaps FROM filters WHERE name = 'small';
SELECT (filter::bytea || '\x00')::perhaps FROM filters WHERE name = 'small';
SELECT set_byte(filter::bytea, 100, 255 - get_byte(filter::bytea, 100))::perhaps FROM filters
    WHERE name = 'small';
SELECT set_byte(filter::bytea, 130, 7)::perhaps FROM filters WHERE name = 'small';
SELECT set_byte(filter::bytea, 8, 9)::perhaps FROM filters WHERE name = 'small';

-- Empty filters.
SELECT perhaps_info(perhaps_create(1000, 0.001));
SELECT kind, i->'kind' AS kind, i->'base' AS base, i->'removes' AS removes, i->'counts' AS counts
    FROM unnest(ARRAY['blocked', 'bloom', 'cuckoo', 'cuckoo removable', 'counting count', 'chain', 'elastic']) kind,
         perhaps_info(perhaps_create(1000, 0.001, kind)) i;
SELECT perhaps_info(perhaps_create(1000, 1e-9))->'hash' AS hash;
SELECT perhaps_create(NULL, 0.01) IS NULL AND perhaps_create(10, NULL) IS NULL AS "null";
SELECT perhaps_create(0, 0.01);
SELECT perhaps_create(-1, 0.01);
SELECT perhaps_create(1000, 0);
SELECT perhaps_create(1000, 1);
SELECT perhaps_create(1000, 'NaN');
SELECT perhaps_create(1000, 0.01, 'sieve');
SELECT perhaps_create(1000, 0.01, 'ribbon');
SELECT perhaps_create(1000000000, 0.001);
SELECT perhaps_create(9223372036854775807, 0.001);
SELECT perhaps_create(100, 0.01, seed => 0);
SELECT perhaps_create(100, 0.01, seed => NULL) = perhaps_create(100, 0.01) AS fixed;
SELECT perhaps_create(100, 0.01, seed => 5)::bytea = perhaps_create(100, 0.01, seed => 6)::bytea AS same;

-- The types of keys.  Text of all types is one key; so are integers of all widths.
CREATE TABLE keys (f perhaps);
INSERT INTO keys SELECT perhaps_add(perhaps_add(perhaps_add(perhaps_add(perhaps_add(
    perhaps_create(100, 1e-9), 'word'), 42), '\x0102'::bytea),
    'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11'::uuid), (-1)::smallint);
CREATE DOMAIN word AS varchar(10);
CREATE DOMAIN number AS integer;
SELECT f @> 'word' AS literal, f @> 'word'::text AS text, f @> 'word'::varchar AS varchar,
       f @> 'word'::char(9) AS bpchar, f @> 'word'::name AS name, f @> 'word'::word AS domain,
       f @> '\x776f7264'::bytea AS bytea FROM keys;
SELECT f @> 42 AS int4, f @> 42::smallint AS int2, f @> 42::bigint AS int8, f @> 42::number AS domain,
       f @> '\x2a00000000000000'::bytea AS bytea, f @> '42' AS text, f @> -1 AS negative,
       f @> -1::bigint AS negative, f @> '\xffffffffffffffff'::bytea AS bytea FROM keys;
SELECT f @> 'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11'::uuid AS uuid,
       f @> '\xa0eebc999c0b4ef8bb6d6bb9bd380a11'::bytea AS bytea,
       f @> 'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11' AS text FROM keys;
SELECT f @> '\x0102'::bytea AS bytea, f @> ''::text AS empty, f @> NULL::text IS NULL AS "null",
       perhaps_contains(NULL, 'a') IS NULL AS "null", perhaps_contains(f, 'word') AS function FROM keys;
SELECT f @> 1.5 FROM keys;
SELECT f @> now() FROM keys;
SELECT f @> true FROM keys;
SELECT f @> ARRAY['word'] FROM keys;
SELECT perhaps_count(f, 'word') FROM keys;

-- A key may be long, and may be TOASTed itself.
CREATE TABLE long_keys AS SELECT repeat(md5(i::text), 1000 * i) AS key FROM generate_series(1, 20) i;
SELECT count(*) FILTER (WHERE f @> key) AS found, count(*) FILTER (WHERE f @> (key || '.')) AS others
    FROM long_keys, (SELECT perhaps_build(key, 1e-9) AS f FROM long_keys) f;

-- Shards: the same on every machine, and even.
SELECT perhaps_shard('word', 1000), perhaps_shard(42, 1000), perhaps_shard(42::bigint, 1000),
       perhaps_shard('42', 1000), perhaps_shard('word', 1), perhaps_shard(NULL::text, 5);
SELECT min(n) > 900 AND max(n) < 1100 AS even, count(*)
    FROM (SELECT count(*) AS n FROM generate_series(1, 10000) i GROUP BY perhaps_shard(i, 10)) n;
SELECT perhaps_shard('word', 0);
