/* What CREATE EXTENSION perhaps makes.  README.md tells how to use it. */
\echo Use "CREATE EXTENSION perhaps" to load this file. \quit

-- ---- The type: its bytes are those of a filter file ------------------------------------------

CREATE TYPE perhaps;
CREATE FUNCTION perhaps_in(cstring) RETURNS perhaps
    AS 'MODULE_PATHNAME', 'pg_perhaps_in' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE COST 1000;
CREATE FUNCTION perhaps_out(perhaps) RETURNS cstring
    AS 'MODULE_PATHNAME', 'pg_perhaps_out' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION perhaps_recv(internal) RETURNS perhaps
    AS 'MODULE_PATHNAME', 'pg_perhaps_recv' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE COST 1000;
CREATE FUNCTION perhaps_send(perhaps) RETURNS bytea
    AS 'MODULE_PATHNAME', 'pg_perhaps_send' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE TYPE perhaps (
    INPUT = perhaps_in, OUTPUT = perhaps_out, RECEIVE = perhaps_recv, SEND = perhaps_send,
    INTERNALLENGTH = VARIABLE,
    STORAGE = EXTERNAL -- half of the bits are set, so that nothing compresses them
);
COMMENT ON TYPE perhaps IS 'a filter, which answers "certainly not" or "perhaps"';

CREATE FUNCTION perhaps_from_bytea(bytea) RETURNS perhaps
    AS 'MODULE_PATHNAME', 'pg_perhaps_from_bytea' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE COST 1000;
CREATE CAST (bytea AS perhaps) WITH FUNCTION perhaps_from_bytea(bytea);
CREATE CAST (perhaps AS bytea) WITHOUT FUNCTION;

CREATE FUNCTION perhaps_create(capacity bigint, fpr double precision, kind text DEFAULT NULL,
                              seed bigint DEFAULT NULL) RETURNS perhaps
    AS 'MODULE_PATHNAME', 'pg_perhaps_create' LANGUAGE C IMMUTABLE PARALLEL SAFE COST 1000;
CREATE FUNCTION perhaps_info(filter perhaps) RETURNS jsonb
    AS 'MODULE_PATHNAME', 'pg_perhaps_info' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE COST 1000;

-- ---- Equality, order and hash ----------------------------------------------------------------

-- Values are equal if their bytes are.  The order means nothing; it is there for sorts and indexes.

CREATE FUNCTION perhaps_eq(perhaps, perhaps) RETURNS boolean
    AS 'MODULE_PATHNAME', 'pg_perhaps_eq' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION perhaps_ne(perhaps, perhaps) RETURNS boolean
    AS 'MODULE_PATHNAME', 'pg_perhaps_ne' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION perhaps_lt(perhaps, perhaps) RETURNS boolean
    AS 'MODULE_PATHNAME', 'pg_perhaps_lt' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION perhaps_le(perhaps, perhaps) RETURNS boolean
    AS 'MODULE_PATHNAME', 'pg_perhaps_le' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION perhaps_ge(perhaps, perhaps) RETURNS boolean
    AS 'MODULE_PATHNAME', 'pg_perhaps_ge' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION perhaps_gt(perhaps, perhaps) RETURNS boolean
    AS 'MODULE_PATHNAME', 'pg_perhaps_gt' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION perhaps_cmp(perhaps, perhaps) RETURNS integer
    AS 'MODULE_PATHNAME', 'pg_perhaps_cmp' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION perhaps_hash(perhaps) RETURNS integer
    AS 'MODULE_PATHNAME', 'pg_perhaps_hash' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION perhaps_hash_extended(perhaps, bigint) RETURNS bigint
    AS 'MODULE_PATHNAME', 'pg_perhaps_hash_extended' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;

CREATE OPERATOR = (LEFTARG = perhaps, RIGHTARG = perhaps, FUNCTION = perhaps_eq,
                   COMMUTATOR = =, NEGATOR = <>, RESTRICT = eqsel, JOIN = eqjoinsel, HASHES, MERGES);
CREATE OPERATOR <> (LEFTARG = perhaps, RIGHTARG = perhaps, FUNCTION = perhaps_ne,
                   COMMUTATOR = <>, NEGATOR = =, RESTRICT = neqsel, JOIN = neqjoinsel);
CREATE OPERATOR < (LEFTARG = perhaps, RIGHTARG = perhaps, FUNCTION = perhaps_lt,
                   COMMUTATOR = >, NEGATOR = >=, RESTRICT = scalarltsel, JOIN = scalarltjoinsel);
CREATE OPERATOR <= (LEFTARG = perhaps, RIGHTARG = perhaps, FUNCTION = perhaps_le,
                   COMMUTATOR = >=, NEGATOR = >, RESTRICT = scalarlesel, JOIN = scalarlejoinsel);
CREATE OPERATOR >= (LEFTARG = perhaps, RIGHTARG = perhaps, FUNCTION = perhaps_ge,
                   COMMUTATOR = <=, NEGATOR = <, RESTRICT = scalargesel, JOIN = scalargejoinsel);
CREATE OPERATOR > (LEFTARG = perhaps, RIGHTARG = perhaps, FUNCTION = perhaps_gt,
                   COMMUTATOR = <, NEGATOR = <=, RESTRICT = scalargtsel, JOIN = scalargtjoinsel);

CREATE OPERATOR CLASS perhaps_ops DEFAULT FOR TYPE perhaps USING btree AS
    OPERATOR 1 <, OPERATOR 2 <=, OPERATOR 3 =, OPERATOR 4 >=, OPERATOR 5 >,
    FUNCTION 1 perhaps_cmp(perhaps, perhaps);
CREATE OPERATOR CLASS perhaps_ops DEFAULT FOR TYPE perhaps USING hash AS
    OPERATOR 1 =,
    FUNCTION 1 perhaps_hash(perhaps),
    FUNCTION 2 perhaps_hash_extended(perhaps, bigint);

-- ---- Questions -------------------------------------------------------------------------------

-- Each function of a key has a form for text, which also takes a literal, and one for the other
-- types, which finds out the type of its argument.

CREATE FUNCTION perhaps_contains(filter perhaps, key text) RETURNS boolean
    AS 'MODULE_PATHNAME', 'pg_perhaps_contains' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION perhaps_contains(filter perhaps, key anyelement) RETURNS boolean
    AS 'MODULE_PATHNAME', 'pg_perhaps_contains' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE OPERATOR @> (LEFTARG = perhaps, RIGHTARG = text, FUNCTION = perhaps_contains);
CREATE OPERATOR @> (LEFTARG = perhaps, RIGHTARG = anyelement, FUNCTION = perhaps_contains);

CREATE FUNCTION perhaps_count(filter perhaps, key text) RETURNS bigint
    AS 'MODULE_PATHNAME', 'pg_perhaps_count' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION perhaps_count(filter perhaps, key anyelement) RETURNS bigint
    AS 'MODULE_PATHNAME', 'pg_perhaps_count' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;

CREATE FUNCTION perhaps_shard(key text, n integer) RETURNS integer
    AS 'MODULE_PATHNAME', 'pg_perhaps_shard' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION perhaps_shard(key anyelement, n integer) RETURNS integer
    AS 'MODULE_PATHNAME', 'pg_perhaps_shard' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;

-- ---- Changes ---------------------------------------------------------------------------------

-- A NULL is no key, and leaves the filter as it is.

CREATE FUNCTION perhaps_add(filter perhaps, key text) RETURNS perhaps
    AS 'MODULE_PATHNAME', 'pg_perhaps_add' LANGUAGE C IMMUTABLE PARALLEL SAFE COST 1000;
CREATE FUNCTION perhaps_add(filter perhaps, key anyelement) RETURNS perhaps
    AS 'MODULE_PATHNAME', 'pg_perhaps_add' LANGUAGE C IMMUTABLE PARALLEL SAFE COST 1000;
CREATE FUNCTION perhaps_remove(filter perhaps, key text) RETURNS perhaps
    AS 'MODULE_PATHNAME', 'pg_perhaps_remove' LANGUAGE C IMMUTABLE PARALLEL SAFE COST 1000;
CREATE FUNCTION perhaps_remove(filter perhaps, key anyelement) RETURNS perhaps
    AS 'MODULE_PATHNAME', 'pg_perhaps_remove' LANGUAGE C IMMUTABLE PARALLEL SAFE COST 1000;

CREATE FUNCTION perhaps_merge(a perhaps, b perhaps) RETURNS perhaps
    AS 'MODULE_PATHNAME', 'pg_perhaps_merge' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE COST 1000;
CREATE OPERATOR | (LEFTARG = perhaps, RIGHTARG = perhaps, FUNCTION = perhaps_merge,
                   COMMUTATOR = |);

-- ---- Aggregates ------------------------------------------------------------------------------

CREATE FUNCTION perhaps_build_add(internal, anyelement, double precision) RETURNS internal
    AS 'MODULE_PATHNAME', 'pg_perhaps_build_add' LANGUAGE C IMMUTABLE PARALLEL SAFE;
CREATE FUNCTION perhaps_build_add(internal, anyelement, double precision, bigint) RETURNS internal
    AS 'MODULE_PATHNAME', 'pg_perhaps_build_add' LANGUAGE C IMMUTABLE PARALLEL SAFE;
CREATE FUNCTION perhaps_build_add(internal, anyelement, double precision, bigint, text)
    RETURNS internal
    AS 'MODULE_PATHNAME', 'pg_perhaps_build_add' LANGUAGE C IMMUTABLE PARALLEL SAFE;
CREATE FUNCTION perhaps_build_add(internal, anyelement, double precision, bigint, text, bigint)
    RETURNS internal
    AS 'MODULE_PATHNAME', 'pg_perhaps_build_add' LANGUAGE C IMMUTABLE PARALLEL SAFE;
CREATE FUNCTION perhaps_merge_add(internal, perhaps) RETURNS internal
    AS 'MODULE_PATHNAME', 'pg_perhaps_merge_add' LANGUAGE C IMMUTABLE PARALLEL SAFE;
CREATE FUNCTION perhaps_build_combine(internal, internal) RETURNS internal
    AS 'MODULE_PATHNAME', 'pg_perhaps_build_combine' LANGUAGE C IMMUTABLE PARALLEL SAFE;
CREATE FUNCTION perhaps_build_serialize(internal) RETURNS bytea
    AS 'MODULE_PATHNAME', 'pg_perhaps_build_serialize' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION perhaps_build_deserialize(bytea, internal) RETURNS internal
    AS 'MODULE_PATHNAME', 'pg_perhaps_build_deserialize' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION perhaps_build_final(internal) RETURNS perhaps
    AS 'MODULE_PATHNAME', 'pg_perhaps_build_final' LANGUAGE C IMMUTABLE PARALLEL SAFE;

-- The smallest filter of these keys, which is built when all are there: no key can be added later.
CREATE AGGREGATE perhaps_build(key anyelement, fpr double precision) (
    SFUNC = perhaps_build_add, STYPE = internal, SSPACE = 16384,
    FINALFUNC = perhaps_build_final, FINALFUNC_MODIFY = READ_WRITE, PARALLEL = SAFE
);
-- A filter with room for 'capacity' keys.
CREATE AGGREGATE perhaps_build(key anyelement, fpr double precision, capacity bigint) (
    SFUNC = perhaps_build_add, STYPE = internal, SSPACE = 16384, FINALFUNC = perhaps_build_final,
    COMBINEFUNC = perhaps_build_combine, SERIALFUNC = perhaps_build_serialize,
    DESERIALFUNC = perhaps_build_deserialize, PARALLEL = SAFE
);
CREATE AGGREGATE perhaps_build(key anyelement, fpr double precision, capacity bigint, kind text) (
    SFUNC = perhaps_build_add, STYPE = internal, SSPACE = 16384, FINALFUNC = perhaps_build_final,
    COMBINEFUNC = perhaps_build_combine, SERIALFUNC = perhaps_build_serialize,
    DESERIALFUNC = perhaps_build_deserialize, PARALLEL = SAFE
);
CREATE AGGREGATE perhaps_build(key anyelement, fpr double precision, capacity bigint, kind text,
                             seed bigint) (
    SFUNC = perhaps_build_add, STYPE = internal, SSPACE = 16384, FINALFUNC = perhaps_build_final,
    COMBINEFUNC = perhaps_build_combine, SERIALFUNC = perhaps_build_serialize,
    DESERIALFUNC = perhaps_build_deserialize, PARALLEL = SAFE
);
CREATE AGGREGATE perhaps_merge(filter perhaps) (
    SFUNC = perhaps_merge_add, STYPE = internal, SSPACE = 16384, FINALFUNC = perhaps_build_final,
    COMBINEFUNC = perhaps_build_combine, SERIALFUNC = perhaps_build_serialize,
    DESERIALFUNC = perhaps_build_deserialize, PARALLEL = SAFE
);

-- ---- Files -----------------------------------------------------------------------------------

-- Files of the folder perhaps.folder.  They are read with the rights of the server, so a superuser
-- grants this to those who may ask them.
CREATE FUNCTION perhaps_contains_file(name text, key text) RETURNS boolean
    AS 'MODULE_PATHNAME', 'pg_perhaps_contains_file' LANGUAGE C STABLE STRICT PARALLEL SAFE;
CREATE FUNCTION perhaps_contains_file(name text, key anyelement) RETURNS boolean
    AS 'MODULE_PATHNAME', 'pg_perhaps_contains_file' LANGUAGE C STABLE STRICT PARALLEL SAFE;
REVOKE EXECUTE ON FUNCTION perhaps_contains_file(text, text) FROM PUBLIC;
REVOKE EXECUTE ON FUNCTION perhaps_contains_file(text, anyelement) FROM PUBLIC;
