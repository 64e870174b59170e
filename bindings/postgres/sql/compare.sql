-- Equality, order and hash: of values in memory, in rows, in TOAST tables, and compressed.
CREATE TABLE things (id int, filter perhaps);
INSERT INTO things
    SELECT i, perhaps_add(perhaps_create(100, 0.01), i % 5) FROM generate_series(1, 20) i;
INSERT INTO things
    SELECT 100 + i, perhaps_build(n, 0.001, 20000 + 1000 * (i % 3)) FROM generate_series(1, 6) i,
        generate_series(1, 10000) n GROUP BY i;
CREATE TABLE packed (LIKE things);
ALTER TABLE packed ALTER filter SET STORAGE MAIN;
INSERT INTO packed SELECT id, filter::bytea::perhaps FROM things;
ANALYZE things;
ANALYZE packed;
SELECT count(*), count(DISTINCT filter), count(DISTINCT filter::bytea) FROM things;
SELECT count(*), min(id), max(id) FROM things GROUP BY filter ORDER BY 2, 3;
SELECT count(*) FROM (SELECT filter FROM things UNION SELECT filter FROM packed) f;
SELECT count(*) FROM (SELECT filter FROM things EXCEPT SELECT filter FROM packed) f;

-- The six operators agree with the bytes, for all pairs.
SELECT count(*) AS wrong FROM things a, packed b
    WHERE (a.filter = b.filter) <> (a.filter::bytea = b.filter::bytea)
       OR (a.filter <> b.filter) = (a.filter = b.filter)
       OR (a.filter < b.filter)::int + (a.filter = b.filter)::int + (a.filter > b.filter)::int <> 1
       OR (a.filter <= b.filter) = (a.filter > b.filter)
       OR (a.filter >= b.filter) = (a.filter < b.filter)
       OR (a.filter < b.filter) <> (b.filter > a.filter)
       OR sign(perhaps_cmp(a.filter, b.filter)) <> -sign(perhaps_cmp(b.filter, a.filter));
-- It is an order: what is sorted is sorted for all pairs.
SELECT count(*) AS wrong FROM (SELECT filter, row_number() OVER (ORDER BY filter) AS n FROM things) a,
    (SELECT filter, row_number() OVER (ORDER BY filter) AS n FROM things) b
    WHERE a.n < b.n AND a.filter > b.filter;
-- Equal values have one hash, and different ones hardly ever; also with a seed.
SELECT count(*) AS wrong FROM things a, packed b
    WHERE (a.filter = b.filter) <> (perhaps_hash(a.filter) = perhaps_hash(b.filter))
       OR (a.filter = b.filter) <>
          (perhaps_hash_extended(a.filter, 42) = perhaps_hash_extended(b.filter, 42));
SELECT perhaps_hash_extended(filter, 1) <> perhaps_hash_extended(filter, 2) AS seeded FROM things
    WHERE id = 1;

-- One bit more, in a value of the same size; the same bits after other failures.
SELECT f = perhaps_add(f, 7) AS added, f = perhaps_remove(perhaps_add(f, 7), 7) AS gone,
       f = perhaps_remove(f, 'never') AS counted, f IS DISTINCT FROM f AS distinct, f IN (f) AS among,
       f = NULL IS NULL AS "null"
    FROM perhaps_create(1000, 1e-6, 'cuckoo removable') f;

-- Joins of all sorts.
SET enable_nestloop = off;
SET enable_mergejoin = off;
EXPLAIN (COSTS off) SELECT count(*) FROM things JOIN packed USING (filter);
SELECT count(*) FROM things JOIN packed USING (filter);
SET enable_mergejoin = on;
SET enable_hashjoin = off;
SELECT count(*) FROM things JOIN packed USING (filter);
RESET enable_nestloop;
RESET enable_hashjoin;

-- Indexes and partitions.
CREATE INDEX things_filter ON things USING hash (filter);
SET enable_seqscan = off;
DO $$
DECLARE
    line text; used boolean := false;
BEGIN
    FOR line IN EXPLAIN SELECT id FROM things WHERE filter = (SELECT filter FROM packed WHERE id = 3) LOOP
        used := used OR line LIKE '%things_filter%';
    END LOOP;
    ASSERT used, 'the index is not used';
END $$;
SELECT id FROM things
    WHERE filter = (SELECT filter FROM packed WHERE id = 3) ORDER BY id;
RESET enable_seqscan;
CREATE TABLE parted (filter perhaps) PARTITION BY HASH (filter);
CREATE TABLE part0 PARTITION OF parted FOR VALUES WITH (MODULUS 2, REMAINDER 0);
CREATE TABLE part1 PARTITION OF parted FOR VALUES WITH (MODULUS 2, REMAINDER 1);
INSERT INTO parted SELECT filter FROM things;
SELECT count(*) FROM parted WHERE filter = (SELECT filter FROM packed WHERE id = 102);

-- Whole rows, and arrays.
SELECT count(*) FROM things t JOIN packed p ON t = p;
SELECT ARRAY[filter] = ARRAY[filter::bytea::perhaps] AS arrays FROM things WHERE id = 101;

-- A class of operators that says what it should.
SELECT amname, amvalidate(c.oid) AS valid
    FROM pg_opclass c JOIN pg_am a ON a.oid = opcmethod WHERE opcname = 'perhaps_ops' ORDER BY amname;
SELECT proname, provolatile, proparallel, proisstrict, procost FROM pg_proc
    WHERE proname ~ '^perhaps_' AND prokind = 'f'
      AND (proparallel <> 's' OR provolatile <> 'i' AND proname <> 'perhaps_contains_file')
    ORDER BY proname;
