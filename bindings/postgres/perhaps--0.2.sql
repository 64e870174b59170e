/* What CREATE EXTENSION perhaps makes.  README.md tells how to use it. */
\echo Use "CREATE EXTENSION perhaps" to load this file. \quit

-- ---- The type: its bytes are those of a filter file ------------------------------------------

CREATE TYPE perhaps;
CREATE FUNCTION perhaps_in(cstring) RETURNS perhaps
    AS 'MODULE_PATHNAME', 'pg_perhaps_in' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION perhaps_out(perhaps) RETURNS cstring
    AS 'MODULE_PATHNAME', 'pg_perhaps_out' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION perhaps_recv(internal) RETURNS perhaps
    AS 'MODULE_PATHNAME', 'pg_perhaps_recv' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION perhaps_send(perhaps) RETURNS bytea
    AS 'MODULE_PATHNAME', 'pg_perhaps_send' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE TYPE perhaps (
    INPUT = perhaps_in, OUTPUT = perhaps_out, RECEIVE = perhaps_recv, SEND = perhaps_send,
    INTERNALLENGTH = VARIABLE,
    STORAGE = EXTERNAL -- half of the bits are set, so that nothing compresses them
);
COMMENT ON TYPE perhaps IS 'a filter, which answers "certainly not" or "perhaps"';

CREATE FUNCTION perhaps_from_bytea(bytea) RETURNS perhaps
    AS 'MODULE_PATHNAME', 'pg_perhaps_from_bytea' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE CAST (bytea AS perhaps) WITH FUNCTION perhaps_from_bytea(bytea);
CREATE CAST (perhaps AS bytea) WITHOUT FUNCTION;

CREATE FUNCTION perhaps_empty(capacity bigint, rate double precision, kind text DEFAULT NULL,
                              seed bigint DEFAULT NULL) RETURNS perhaps
    AS 'MODULE_PATHNAME', 'pg_perhaps_empty' LANGUAGE C IMMUTABLE PARALLEL SAFE;
CREATE FUNCTION perhaps_info(filter perhaps) RETURNS jsonb
    AS 'MODULE_PATHNAME', 'pg_perhaps_info' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;

-- ---- Questions -------------------------------------------------------------------------------

-- Each function of a key has a form for text, which also takes a literal, and one for the other
-- types, which finds out the type of its argument.

CREATE FUNCTION perhaps_contains(filter perhaps, value text) RETURNS boolean
    AS 'MODULE_PATHNAME', 'pg_perhaps_contains' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION perhaps_contains(filter perhaps, value anyelement) RETURNS boolean
    AS 'MODULE_PATHNAME', 'pg_perhaps_contains' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE OPERATOR @> (LEFTARG = perhaps, RIGHTARG = text, FUNCTION = perhaps_contains);
CREATE OPERATOR @> (LEFTARG = perhaps, RIGHTARG = anyelement, FUNCTION = perhaps_contains);

CREATE FUNCTION perhaps_count(filter perhaps, value text) RETURNS bigint
    AS 'MODULE_PATHNAME', 'pg_perhaps_count' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION perhaps_count(filter perhaps, value anyelement) RETURNS bigint
    AS 'MODULE_PATHNAME', 'pg_perhaps_count' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;

CREATE FUNCTION perhaps_shard(value text, n integer) RETURNS integer
    AS 'MODULE_PATHNAME', 'pg_perhaps_shard' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION perhaps_shard(value anyelement, n integer) RETURNS integer
    AS 'MODULE_PATHNAME', 'pg_perhaps_shard' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;

-- ---- Changes ---------------------------------------------------------------------------------

-- A value that is NULL is no key, and leaves the filter as it is.

CREATE FUNCTION perhaps_add(filter perhaps, value text) RETURNS perhaps
    AS 'MODULE_PATHNAME', 'pg_perhaps_add' LANGUAGE C IMMUTABLE PARALLEL SAFE;
CREATE FUNCTION perhaps_add(filter perhaps, value anyelement) RETURNS perhaps
    AS 'MODULE_PATHNAME', 'pg_perhaps_add' LANGUAGE C IMMUTABLE PARALLEL SAFE;
CREATE FUNCTION perhaps_remove(filter perhaps, value text) RETURNS perhaps
    AS 'MODULE_PATHNAME', 'pg_perhaps_remove' LANGUAGE C IMMUTABLE PARALLEL SAFE;
CREATE FUNCTION perhaps_remove(filter perhaps, value anyelement) RETURNS perhaps
    AS 'MODULE_PATHNAME', 'pg_perhaps_remove' LANGUAGE C IMMUTABLE PARALLEL SAFE;

CREATE FUNCTION perhaps_union(a perhaps, b perhaps) RETURNS perhaps
    AS 'MODULE_PATHNAME', 'pg_perhaps_union' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE OPERATOR | (LEFTARG = perhaps, RIGHTARG = perhaps, FUNCTION = perhaps_union,
                   COMMUTATOR = |);

-- ---- Aggregates ------------------------------------------------------------------------------

CREATE FUNCTION perhaps_agg_add(internal, anyelement, double precision) RETURNS internal
    AS 'MODULE_PATHNAME', 'pg_perhaps_agg_add' LANGUAGE C IMMUTABLE PARALLEL SAFE;
CREATE FUNCTION perhaps_agg_add(internal, anyelement, double precision, bigint) RETURNS internal
    AS 'MODULE_PATHNAME', 'pg_perhaps_agg_add' LANGUAGE C IMMUTABLE PARALLEL SAFE;
CREATE FUNCTION perhaps_agg_add(internal, anyelement, double precision, bigint, text)
    RETURNS internal
    AS 'MODULE_PATHNAME', 'pg_perhaps_agg_add' LANGUAGE C IMMUTABLE PARALLEL SAFE;
CREATE FUNCTION perhaps_agg_add(internal, anyelement, double precision, bigint, text, bigint)
    RETURNS internal
    AS 'MODULE_PATHNAME', 'pg_perhaps_agg_add' LANGUAGE C IMMUTABLE PARALLEL SAFE;
CREATE FUNCTION perhaps_union_add(internal, perhaps) RETURNS internal
    AS 'MODULE_PATHNAME', 'pg_perhaps_union_add' LANGUAGE C IMMUTABLE PARALLEL SAFE;
CREATE FUNCTION perhaps_agg_combine(internal, internal) RETURNS internal
    AS 'MODULE_PATHNAME', 'pg_perhaps_agg_combine' LANGUAGE C IMMUTABLE PARALLEL SAFE;
CREATE FUNCTION perhaps_agg_serialize(internal) RETURNS bytea
    AS 'MODULE_PATHNAME', 'pg_perhaps_agg_serialize' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION perhaps_agg_deserialize(bytea, internal) RETURNS internal
    AS 'MODULE_PATHNAME', 'pg_perhaps_agg_deserialize' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION perhaps_agg_final(internal) RETURNS perhaps
    AS 'MODULE_PATHNAME', 'pg_perhaps_agg_final' LANGUAGE C IMMUTABLE PARALLEL SAFE;

-- The smallest filter of these keys, which is built when all are there: no key can be added later.
CREATE AGGREGATE perhaps_agg(value anyelement, rate double precision) (
    SFUNC = perhaps_agg_add, STYPE = internal, SSPACE = 16384,
    FINALFUNC = perhaps_agg_final, FINALFUNC_MODIFY = READ_WRITE, PARALLEL = SAFE
);
-- A filter with room for 'capacity' keys.
CREATE AGGREGATE perhaps_agg(value anyelement, rate double precision, capacity bigint) (
    SFUNC = perhaps_agg_add, STYPE = internal, SSPACE = 16384, FINALFUNC = perhaps_agg_final,
    COMBINEFUNC = perhaps_agg_combine, SERIALFUNC = perhaps_agg_serialize,
    DESERIALFUNC = perhaps_agg_deserialize, PARALLEL = SAFE
);
CREATE AGGREGATE perhaps_agg(value anyelement, rate double precision, capacity bigint, kind text) (
    SFUNC = perhaps_agg_add, STYPE = internal, SSPACE = 16384, FINALFUNC = perhaps_agg_final,
    COMBINEFUNC = perhaps_agg_combine, SERIALFUNC = perhaps_agg_serialize,
    DESERIALFUNC = perhaps_agg_deserialize, PARALLEL = SAFE
);
CREATE AGGREGATE perhaps_agg(value anyelement, rate double precision, capacity bigint, kind text,
                             seed bigint) (
    SFUNC = perhaps_agg_add, STYPE = internal, SSPACE = 16384, FINALFUNC = perhaps_agg_final,
    COMBINEFUNC = perhaps_agg_combine, SERIALFUNC = perhaps_agg_serialize,
    DESERIALFUNC = perhaps_agg_deserialize, PARALLEL = SAFE
);
CREATE AGGREGATE perhaps_union(filter perhaps) (
    SFUNC = perhaps_union_add, STYPE = internal, SSPACE = 16384, FINALFUNC = perhaps_agg_final,
    COMBINEFUNC = perhaps_agg_combine, SERIALFUNC = perhaps_agg_serialize,
    DESERIALFUNC = perhaps_agg_deserialize, PARALLEL = SAFE
);

-- ---- Files -----------------------------------------------------------------------------------

-- Files of the folder perhaps.folder.  They are read with the rights of the server, so a superuser
-- grants this to those who may ask them.
CREATE FUNCTION perhaps_contains_file(name text, value text) RETURNS boolean
    AS 'MODULE_PATHNAME', 'pg_perhaps_contains_file' LANGUAGE C STABLE STRICT PARALLEL SAFE;
CREATE FUNCTION perhaps_contains_file(name text, value anyelement) RETURNS boolean
    AS 'MODULE_PATHNAME', 'pg_perhaps_contains_file' LANGUAGE C STABLE STRICT PARALLEL SAFE;
REVOKE EXECUTE ON FUNCTION perhaps_contains_file(text, text) FROM PUBLIC;
REVOKE EXECUTE ON FUNCTION perhaps_contains_file(text, anyelement) FROM PUBLIC;
