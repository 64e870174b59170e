-- Files of a folder.  The shell commands get no row: one that reads none would break the pipe.
SELECT current_setting('data_directory') || '/perhaps_regress' AS folder \gset
COPY (SELECT 1 LIMIT 0) TO PROGRAM 'rm -rf perhaps_regress && mkdir perhaps_regress';
CREATE FUNCTION export(filter perhaps, path text) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    id oid := lo_from_bytea(0, filter::bytea);
BEGIN
    PERFORM lo_export(id, path);
    PERFORM lo_unlink(id);
END $$;
SELECT export(perhaps_build(i, 1e-6), :'folder' || '/numbers') FROM generate_series(1, 1000) i;
SELECT export(perhaps_add(perhaps_create(10, 1e-6), 'secret'), :'folder' || '/.hidden');

-- Nothing is asked as long as nobody has named a folder.
SELECT perhaps_contains_file('numbers', 1);
SET perhaps.folder = 'relative';
SET perhaps.folder = :'folder';
SELECT perhaps_contains_file('numbers', 1) AS one, perhaps_contains_file('numbers', 0) AS zero,
       perhaps_contains_file('numbers', '1') AS text, perhaps_contains_file('numbers', NULL::int) AS "null";
SELECT count(*) FROM generate_series(-1000, 1000) i WHERE perhaps_contains_file('numbers', i);

-- Names that are no plain names of regular files.
SELECT perhaps_contains_file('', 1);
SELECT perhaps_contains_file('.', 1);
SELECT perhaps_contains_file('..', 1);
SELECT perhaps_contains_file('.hidden', 'secret');
SELECT perhaps_contains_file('../perhaps_regress/numbers', 1);
SELECT perhaps_contains_file('/etc/passwd', 1);
SELECT perhaps_contains_file('missing', 1);
COPY (SELECT 1 LIMIT 0) TO PROGRAM 'ln -s numbers perhaps_regress/link';
COPY (SELECT 1 LIMIT 0) TO PROGRAM 'mkdir perhaps_regress/folder && mkfifo perhaps_regress/pipe';
COPY (SELECT 1 LIMIT 0) TO PROGRAM 'cp PG_VERSION perhaps_regress/text';
SELECT perhaps_contains_file('link', 1);
SELECT perhaps_contains_file('folder', 1);
SELECT perhaps_contains_file('pipe', 1);
SELECT perhaps_contains_file('text', 1);

-- A file that takes the place of another one is found by the next statement.
SELECT export(perhaps_build(i, 1e-6), :'folder' || '/new') FROM generate_series(5001, 6000) i;
COPY (SELECT 1 LIMIT 0) TO PROGRAM 'mv perhaps_regress/new perhaps_regress/numbers';
SELECT perhaps_contains_file('numbers', 1) AS before, perhaps_contains_file('numbers', 5001) AS now;
COPY (SELECT 1 LIMIT 0) TO PROGRAM 'rm perhaps_regress/numbers';
SELECT perhaps_contains_file('numbers', 5001);

-- More files than stay mapped.
DO $$
BEGIN
    FOR i IN 1 .. 80 LOOP
        PERFORM export(perhaps_add(perhaps_create(10, 1e-6), i),
                       current_setting('perhaps.folder') || '/f' || i);
    END LOOP;
END $$;
SELECT count(*) AS found FROM generate_series(1, 80) i, generate_series(1, 2)
    WHERE perhaps_contains_file('f' || i, i) AND NOT perhaps_contains_file('f' || i, i + 1);

-- Who may do what: nobody but a superuser names the folder, and grants the function.
CREATE ROLE perhaps_regress;
SET ROLE perhaps_regress;
SELECT perhaps_contains_file('f1', 1);
SET perhaps.folder = '/etc';
\set VERBOSITY sqlstate
SHOW perhaps.folder; -- the words depend on the version of the server
\set VERBOSITY default
SELECT perhaps_create(10, 0.01) @> 'a' AS others_may_be_called;
RESET ROLE;
GRANT EXECUTE ON FUNCTION perhaps_contains_file(text, anyelement) TO perhaps_regress;
SET ROLE perhaps_regress;
SELECT perhaps_contains_file('f1', 1);
RESET ROLE;
REVOKE EXECUTE ON FUNCTION perhaps_contains_file(text, anyelement) FROM perhaps_regress;
DROP ROLE perhaps_regress;

RESET perhaps.folder;
SELECT perhaps_contains_file('f1', 1);
COPY (SELECT 1 LIMIT 0) TO PROGRAM 'rm -rf perhaps_regress perhaps_regress.copy';
