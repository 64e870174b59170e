-- Text is its bytes in UTF-8, whatever encoding the database has.
SET client_encoding = 'UTF8';
SELECT perhaps_build(t, 1e-9)::text AS filter FROM unnest(ARRAY['plain', 'Gödel', 'naïve']) t \gset
CREATE DATABASE perhaps_latin1 ENCODING 'LATIN1' LC_COLLATE 'C' LC_CTYPE 'C' TEMPLATE template0;
CREATE DATABASE perhaps_ascii ENCODING 'SQL_ASCII' LC_COLLATE 'C' LC_CTYPE 'C' TEMPLATE template0;
\set before :DBNAME

\c perhaps_latin1
SET client_encoding = 'UTF8';
CREATE EXTENSION perhaps;
SELECT t, octet_length(t), :'filter'::perhaps @> t AS found
    FROM unnest(ARRAY['plain', 'Gödel', 'naïve', 'other']) t;
SELECT perhaps_build(t, 1e-9)::text = :'filter' AS same FROM unnest(ARRAY['plain', 'Gödel', 'naïve']) t;
SELECT perhaps_shard('Gödel', 1000000) AS shard;

\c perhaps_ascii
SET client_encoding = 'SQL_ASCII';
CREATE EXTENSION perhaps;
SELECT octet_length(t), :'filter'::perhaps @> t AS found
    FROM unnest(ARRAY['plain', 'Gödel', 'other']) t;
-- Here text that is no UTF-8 is no key.
SELECT :'filter'::perhaps @> convert_from('\x47f664656c', 'SQL_ASCII');

\c :before
SET client_encoding = 'UTF8';
SELECT perhaps_shard('Gödel', 1000000) AS shard;
DROP DATABASE perhaps_latin1;
DROP DATABASE perhaps_ascii;
