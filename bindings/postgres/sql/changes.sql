-- Keys that are added and removed, and unions.
CREATE TABLE sets (name text PRIMARY KEY, filter perhaps);
INSERT INTO sets VALUES ('blocked', perhaps_create(1000, 1e-6)),
                        ('cuckoo', perhaps_create(1000, 1e-6, 'cuckoo removable')),
                        ('counting', perhaps_create(1000, 1e-6, 'counting count'));
UPDATE sets SET filter = perhaps_add(filter, 'one');
UPDATE sets SET filter = perhaps_add(filter, ARRAY['two', NULL, 'three']);
UPDATE sets SET filter = perhaps_add(filter, (SELECT array_agg(i) FROM generate_series(1, 700) i));
SELECT name, filter @> 'one' AS one, filter @> 'two' AS two, filter @> 'three' AS three,
       filter @> 'four' AS four, perhaps_info(filter)->'keys' AS keys,
       (SELECT count(*) FROM generate_series(1, 700) i WHERE filter @> i) AS numbers
    FROM sets ORDER BY name;

-- A NULL is no key.
SELECT perhaps_add(filter, NULL::text)::bytea = filter::bytea AS added,
       perhaps_remove(filter, NULL::int)::bytea = filter::bytea AS removed,
       perhaps_add(filter, NULL::int[])::bytea = filter::bytea AS array,
       perhaps_add(filter, '{}'::text[])::bytea = filter::bytea AS empty,
       perhaps_add(filter, ARRAY[NULL]::text[])::bytea = filter::bytea AS nulls,
       perhaps_add(NULL, 'a') IS NULL AS filter
    FROM sets WHERE name = 'cuckoo';

-- Removals.
UPDATE sets SET filter = perhaps_remove(perhaps_remove(filter, 'one'), ARRAY['two', 'never'])
    WHERE name = 'cuckoo';
SELECT filter @> 'one' AS one, filter @> 'two' AS two, filter @> 'three' AS three,
       perhaps_info(filter)->'unmatched_removals' AS unmatched FROM sets WHERE name = 'cuckoo';
SELECT perhaps_remove(filter, 'one') FROM sets WHERE name = 'blocked';
-- Without "removable" and "count" a filter is a set, whatever its kind.
SELECT perhaps_info(perhaps_add(f, array_fill('one'::text, ARRAY[1000])))->'keys' AS keys,
       perhaps_info(f)->'removes' AS removes, perhaps_info(f)->'counts' AS counts
    FROM unnest(ARRAY['cuckoo', 'counting', 'elastic', 'strided']) kind, perhaps_create(1000, 1e-6, kind) f;
SELECT perhaps_remove(perhaps_create(1000, 1e-6, 'cuckoo'), 'one');
SELECT perhaps_count(perhaps_create(1000, 1e-6, 'cuckoo'), 'one');
SELECT perhaps_info(perhaps_create(1000, 1e-6, 'removable'))->'removes' AS removes;
SELECT perhaps_create(1000, 1e-6, 'cuckoo, removable, bloom');
SELECT perhaps_create(1000, 1e-6, 'bloom removable');
SELECT perhaps_create(1000, 1e-6, 'cuckoo') | perhaps_create(1000, 1e-6, 'cuckoo removable');
SELECT perhaps_count(perhaps_add(filter, ARRAY[1, 1]), 1) FROM sets WHERE name = 'counting';

-- What cannot be done.
SELECT perhaps_add(filter, 1.5) FROM sets;
SELECT perhaps_add(filter, ARRAY[1.5]) FROM sets;
SELECT perhaps_add(filter, (SELECT array_agg(i) FROM generate_series(1, 2000) i)) FROM sets
    WHERE name = 'blocked';
SELECT perhaps_add(perhaps_build(i, 0.01), 1) FROM generate_series(1, 10) i;

-- Unions.
SELECT f @> 1 AS a, f @> 2 AS b, f @> 3 AS neither
    FROM (SELECT perhaps_add(perhaps_create(9, 1e-6), 1) | perhaps_add(perhaps_create(9, 1e-6), 2) AS f) f;
SELECT perhaps_merge(filter, NULL) IS NULL AS "null" FROM sets WHERE name = 'blocked';
SELECT perhaps_create(9, 1e-6) | perhaps_create(99, 1e-6);
SELECT perhaps_create(9, 1e-6) | perhaps_create(9, 1e-6, seed => 1);

-- A filter in a variable, which does not lie in a table.
DO $$
DECLARE
    f perhaps := perhaps_create(1000, 1e-6);
    found int := 0;
BEGIN
    FOR i IN 1 .. 500 LOOP
        IF f @> i THEN
            RAISE 'found %', i;
        END IF;
        f := perhaps_add(f, i);
        IF NOT f @> i THEN
            RAISE 'lost %', i;
        END IF;
    END LOOP;
    FOR i IN 1 .. 500 LOOP
        found := found + (f @> i)::int;
    END LOOP;
    RAISE NOTICE 'found %', found;
END $$;

-- Many filters in one query, in and out of what a query remembers.
CREATE TABLE shards AS SELECT s AS shard, perhaps_build(i, 1e-6, 5000) AS filter
    FROM generate_series(1, 40000) i, perhaps_shard(i, 20) s GROUP BY s;
SELECT count(*) FILTER (WHERE filter @> i) AS found, count(*) FROM generate_series(1, 80000) i
    JOIN shards ON shard = perhaps_shard(i, 20);
SET work_mem = '64kB';
SET hash_mem_multiplier = 1;
SELECT count(*) FILTER (WHERE filter @> i) AS found, count(*) FROM generate_series(1, 2000) i
    JOIN shards ON shard = perhaps_shard(i, 20);
RESET work_mem;
RESET hash_mem_multiplier;

-- A value that was replaced is not remembered.
DO $$
DECLARE
    before int; after int;
BEGIN
    FOR i IN 90001 .. 90020 LOOP
        before := (SELECT count(*) FROM shards WHERE shard = perhaps_shard(i, 20) AND filter @> i);
        UPDATE shards SET filter = perhaps_add(filter, i) WHERE shard = perhaps_shard(i, 20);
        after := (SELECT count(*) FROM shards WHERE shard = perhaps_shard(i, 20) AND filter @> i);
        IF before <> 0 OR after <> 1 THEN
            RAISE '% % %', i, before, after;
        END IF;
    END LOOP;
END $$;
