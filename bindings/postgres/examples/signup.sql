/* signup.sql - "is this address free?", asked at every keystroke of a sign-up form.
 *
 * The addresses are divided into 65536 shards, and the filter of each shard is a row of the table
 * 'taken', so that a sign-up rewrites little.  With ten million addresses a filter has room for 280
 * and takes 500 bytes: its header of 4 KB has almost nothing but zeros, which are compressed.  Have
 * so many shards that 100 to 500 addresses come to one.
 *
 * Triggers keep the filters up to date in the same transaction, so a question sees filters of just
 * the addresses that it sees.  "Certainly not" needs no look at the index of all addresses; about one
 * free address in a thousand does.
 *
 * It needs a table users with a column email, which has a unique index: the index decides, and the
 * filter only saves looks at it. */
CREATE TABLE taken (shard int PRIMARY KEY, filter perhaps NOT NULL) WITH (fillfactor = 50);
ALTER TABLE taken ALTER filter SET STORAGE MAIN; -- compressed, and in the row; lz4 does that best

-- A shard that is full is made anew from its addresses, which this index finds.
CREATE INDEX users_shard ON users (perhaps_shard(email, 65536));

-- Cuckoo filters take removals.  They have room for half as many addresses more.
INSERT INTO taken
    SELECT shard, perhaps_build(email, 0.001, room, 'cuckoo removable')
    FROM users, perhaps_shard(email, 65536) shard,
         (SELECT (1.5 * count(*) / 65536 + 50)::bigint FROM users) AS r (room)
    GROUP BY shard, room;
-- Shards without an address.
INSERT INTO taken SELECT s, perhaps_create(50, 0.001, 'cuckoo removable') FROM generate_series(0, 65535) s
    ON CONFLICT DO NOTHING;

-- The lock comes first, so that nobody else adds to the shard meanwhile.
CREATE FUNCTION taken_anew(which int) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    PERFORM FROM taken WHERE shard = which FOR UPDATE;
    UPDATE taken SET filter = (
            SELECT perhaps_add(perhaps_create(2 * count(*), 0.001, 'cuckoo removable'), array_agg(email))
            FROM users WHERE perhaps_shard(email, 65536) = which)
        WHERE shard = which;
END $$;

-- The shards come in order, so that two statements do not wait for each other.
CREATE FUNCTION taken_add() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    which int;
    addresses text[];
BEGIN
    FOR which, addresses IN SELECT perhaps_shard(email, 65536) AS s, array_agg(email) FROM added
                            GROUP BY s ORDER BY s LOOP
        BEGIN
            UPDATE taken SET filter = perhaps_add(filter, addresses) WHERE shard = which;
        EXCEPTION WHEN program_limit_exceeded THEN
            PERFORM taken_anew(which);
        END;
    END LOOP;
    RETURN NULL;
END $$;

CREATE FUNCTION taken_remove() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    which int;
    addresses text[];
BEGIN
    FOR which, addresses IN SELECT perhaps_shard(email, 65536) AS s, array_agg(email) FROM removed
                            GROUP BY s ORDER BY s LOOP
        UPDATE taken SET filter = perhaps_remove(filter, addresses) WHERE shard = which;
    END LOOP;
    RETURN NULL;
END $$;

CREATE TRIGGER taken_insert AFTER INSERT ON users
    REFERENCING NEW TABLE AS added FOR EACH STATEMENT EXECUTE FUNCTION taken_add();
CREATE TRIGGER taken_delete AFTER DELETE ON users
    REFERENCING OLD TABLE AS removed FOR EACH STATEMENT EXECUTE FUNCTION taken_remove();
-- The new addresses first: triggers run in the order of their names.
CREATE TRIGGER taken_update_1 AFTER UPDATE ON users
    REFERENCING NEW TABLE AS added FOR EACH STATEMENT EXECUTE FUNCTION taken_add();
CREATE TRIGGER taken_update_2 AFTER UPDATE ON users
    REFERENCING OLD TABLE AS removed FOR EACH STATEMENT EXECUTE FUNCTION taken_remove();

-- The question.
CREATE FUNCTION is_taken(address text) RETURNS boolean LANGUAGE sql STABLE AS $$
    SELECT CASE WHEN filter @> address THEN EXISTS (SELECT FROM users WHERE email = address)
                ELSE false END
    FROM taken WHERE shard = perhaps_shard(address, 65536) $$;
