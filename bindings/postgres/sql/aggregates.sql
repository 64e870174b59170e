-- Aggregates, alone and in parallel.
CREATE TABLE words AS SELECT i, 'user' || i || '@example.com' AS email FROM generate_series(1, 20000) i;
ANALYZE words;

-- Built once.
SELECT count(*) FILTER (WHERE f @> email) AS found, count(*) FILTER (WHERE f @> (email || 'x')) < 60 AS few,
       min(perhaps_info(f)::text)::jsonb - 'load' AS info
    FROM words, (SELECT perhaps_build(email, 0.001) AS f FROM words) f;
-- In whatever order the keys come, the filter is the same.
SELECT (SELECT perhaps_build(email, 0.001 ORDER BY i) FROM words)::bytea =
       (SELECT perhaps_build(email, 0.001 ORDER BY email DESC) FROM words)::bytea AS same;
-- More keys than there is memory for.
SET work_mem = '64kB';
SELECT perhaps_info(perhaps_build(i, 0.001))->'keys' AS keys FROM generate_series(1, 300000) i;
RESET work_mem;

-- With a capacity: keys can be added later.
SELECT count(*) FILTER (WHERE f @> i) AS found, bool_and(perhaps_add(f, 'later') @> 'later') AS later
    FROM words, (SELECT perhaps_build(i, 1e-6, 30000) AS f FROM words) f WHERE i < 50;

-- Repeats are one key; NULLs are none; no rows are no filter.
SELECT perhaps_info(perhaps_build(i % 10, 0.001))->'keys' AS keys FROM words;
SELECT perhaps_info(perhaps_build(NULLIF(i, 5), 0.001)) ->'keys' AS keys FROM generate_series(1, 10) i;
SELECT perhaps_info(perhaps_build(NULL::text, 0.001))->'keys' AS built,
       perhaps_info(perhaps_build(NULL::text, 0.001, 10))->'keys' AS sized FROM words;
SELECT perhaps_build(i, 0.001) IS NULL AS built, perhaps_build(i, 0.001, 10) IS NULL AS sized FROM words
    WHERE false;
SELECT g, perhaps_info(perhaps_build(i, 0.001))->'keys' AS built,
       perhaps_build(i, 0.001, 10000) @> 17 AS sized
    FROM words, LATERAL (SELECT i % 3 AS g) g GROUP BY g ORDER BY g;
SELECT perhaps_build(DISTINCT email, 0.001) @> 'user7@example.com' AS "distinct",
       perhaps_build(email, 0.001) FILTER (WHERE i < 5) @> 'user7@example.com' AS filter FROM words;

-- All types of keys.
SELECT perhaps_build(i::smallint, 1e-9) @> 7 AS int2, perhaps_build(i::bigint, 1e-9) @> 7 AS int8,
       perhaps_build(i::text::varchar, 1e-9) @> '7' AS varchar,
       perhaps_build(i::text::char(9), 1e-9) @> '7' AS bpchar,
       perhaps_build(i::text::name, 1e-9) @> '7' AS name,
       perhaps_build(int4send(i), 1e-9) @> '\x00000007'::bytea AS bytea,
       perhaps_build(md5(i::text)::uuid, 1e-9) @> md5('7')::uuid AS uuid
    FROM generate_series(1, 10) i;

-- Kinds; and seeds: filters of one seed can be united, others not.
SELECT perhaps_remove(perhaps_build(i, 1e-6, 100, 'cuckoo removable'), ARRAY[5, 6]) @> 5 AS removed,
       perhaps_info(perhaps_build(i, 0.01, 20, 'chain'))->'keys' AS more_than_20
    FROM generate_series(1, 100) i;
SELECT (perhaps_build(i, 0.01, 100, NULL, 7) | perhaps_create(100, 0.01, seed => 7)) @> 5 AS same
    FROM generate_series(1, 50) i;
SELECT perhaps_build(i, 0.01, 100, 'bloom', 7) | perhaps_build(i, 0.01, 100, 'bloom', 8)
    FROM generate_series(1, 50) i;

-- What is refused.
SELECT perhaps_build(1.5, 0.01);
SELECT perhaps_build(ARRAY[1], 0.01);
SELECT perhaps_build(i, 0) FROM words;
SELECT perhaps_build(i, 2, 100) FROM words;
SELECT perhaps_build(i, NULL) FROM words;
SELECT perhaps_build(i, 0.01, NULL) FROM words;
SELECT perhaps_build(i, 0.01, 0) FROM words;
SELECT perhaps_build(i, 0.01, 10, 'sieve') FROM words;
SELECT perhaps_build(i, 0.01, 10, 'ribbon') FROM words;
SELECT perhaps_build(i, 1.0 / i) FROM generate_series(2, 9) i;
SELECT perhaps_build(i, 0.01, 100) FROM generate_series(1, 1000) i;
SELECT perhaps_build(i, 0.01, 1000000000000) FROM words;
SELECT perhaps_build(i, 0.01) OVER (ORDER BY i) FROM words;
-- In a window the filter grows from row to row.
SELECT i, perhaps_info(perhaps_build(i, 1e-6, 10) OVER (ORDER BY i))->'keys' AS keys
    FROM generate_series(1, 3) i;

-- Unions of many.
CREATE TABLE days AS SELECT i % 7 AS day, perhaps_build(i, 1e-6, 20000) AS filter FROM words GROUP BY 1;
INSERT INTO days VALUES (8, NULL);
SELECT count(*) FILTER (WHERE f @> i) AS found, count(*) FILTER (WHERE f @> -i) AS others
    FROM words, (SELECT perhaps_merge(filter) AS f FROM days) f;
SELECT perhaps_merge(filter) IS NULL AS "null" FROM days WHERE day = 8;
SELECT perhaps_merge(filter) FROM (VALUES (perhaps_create(100, 0.01)), (perhaps_create(200, 0.01))) v(filter);

-- Parallel workers make the same filters.
SET parallel_setup_cost = 0;
SET parallel_tuple_cost = 0;
SET min_parallel_table_scan_size = 0;
SET max_parallel_workers_per_gather = 2;
ALTER TABLE words SET (parallel_workers = 2);
ALTER TABLE days SET (parallel_workers = 2);
EXPLAIN (COSTS OFF) SELECT perhaps_build(email, 0.001, 20000) FROM words;
EXPLAIN (COSTS OFF) SELECT perhaps_build(email, 0.001, 20000, 'cuckoo') FROM words;
EXPLAIN (COSTS OFF) SELECT perhaps_merge(filter) FROM days;
CREATE TABLE parallel AS SELECT (SELECT perhaps_build(email, 0.001, 20000) FROM words) AS words,
                                (SELECT perhaps_build(i, 0.001, 20000, 'cuckoo') FROM words) AS cuckoo,
                                (SELECT perhaps_merge(filter) FROM days) AS days,
                                (SELECT perhaps_build(i, 0.001) FROM words) AS built;
SELECT count(*) FILTER (WHERE words @> email) AS words, count(*) FILTER (WHERE days @> i) AS days,
       count(*) FILTER (WHERE cuckoo @> i) AS cuckoo
    FROM words, parallel;
SET max_parallel_workers_per_gather = 0;
-- The header, which has a count of the keys that is estimated in unions, takes 4096 bytes.
SELECT substr((SELECT perhaps_build(email, 0.001, 20000) FROM words)::bytea, 4097) =
           substr(words::bytea, 4097) AS words,
       substr((SELECT perhaps_merge(filter) FROM days)::bytea, 4097) =
           substr(days::bytea, 4097) AS days,
       (SELECT perhaps_build(i, 0.001) FROM words)::bytea = built::bytea AS built
    FROM parallel;
