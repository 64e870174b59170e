/* files.c - perhaps_contains_file(): filters in files of one folder, which only the
 * administrator names.
 *
 * A file is mapped once in each server process and stays.  Each statement looks once whether
 * another file has taken its name.  The name is that of a regular file in the folder itself: no
 * path, no symbolic link, no hidden file. */
#include "extension.h"
#include <perhaps_file.h>
#include <perhaps_plan.h>

#include "access/xact.h"
#include "storage/fd.h"
#include "utils/builtins.h"
#include "utils/guc.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char *folder_setting;

/* A mapped file. */
struct file {
    char *folder, *name;
    struct stat at_open;
    struct loaded loaded;
    TimestampTz looked; /* the statement that has looked last */
    struct file *next;
};

/* So many stay mapped in a process; the one that was asked the longest ago goes first. */
enum { FILES_MOST = 64 };
static struct file *files; /* the last asked one first */

/* ---- The setting --------------------------------------------------------------------- */

static bool check_folder(char **value, void **extra, GucSource source)
{
    (void)extra;
    (void)source;
    if (!**value || is_absolute_path(*value))
        return true;
    GUC_check_errdetail("It must be an absolute path, or empty.");
    return false;
}

void files_define_settings(void)
{
    DefineCustomStringVariable("perhaps.folder",
                               "The folder whose files perhaps_contains_file() may ask.",
                               "If it is empty, the function asks none.", &folder_setting, "",
                               PGC_SUSET, GUC_SUPERUSER_ONLY, check_folder, NULL, NULL);
    MarkGUCPrefixReserved("perhaps");
}

/* ---- Files --------------------------------------------------------------------------- */

static void check_name(const char *name)
{
    if (!*folder_setting)
        ereport(ERROR, (errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
                        errmsg("perhaps.folder is not set, so no file can be asked"),
                        errhint("A superuser sets it to the folder of the files.")));
    if (!*name || *name == '.' || strchr(name, '/'))
        ereport(ERROR, (errcode(ERRCODE_INVALID_NAME),
                        errmsg("\"%s\" is not the name of a file in perhaps.folder", name),
                        errhint("Give the plain name: no path, and no dot at the beginning.")));
}

static void close_file(struct file *file)
{
    owned_free(&file->loaded);
    pfree(file->folder);
    pfree(file->name);
    pfree(file);
}

/* Opens the file without following a symbolic link, and without waiting for a pipe.  Returns a
 * descriptor, which is counted as one of our own. */
static int open_regular(const char *name, struct stat *st)
{
    const int folder = open(folder_setting, O_PATH | O_DIRECTORY | O_CLOEXEC);
    const int fd =
        folder < 0 ? -1 : openat(folder, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    int reason = errno;
    if (folder >= 0)
        close(folder);
    if (fd >= 0 && fstat(fd, st)) {
        reason = errno;
        close(fd);
    } else if (fd >= 0 && S_ISREG(st->st_mode)) {
        return fd;
    } else if (fd >= 0) {
        reason = EINVAL;
        close(fd);
    }
    errno = reason;
    ereport(ERROR, (errcode_for_file_access(),
                    errmsg("could not open the filter \"%s\" in perhaps.folder: %m", name),
                    reason == ELOOP || reason == EINVAL
                        ? errhint("It must be a regular file, not a link to one.")
                        : 0));
    pg_unreachable();
}

/* The library opens a file by its path: that of the descriptor is the file that was checked. */
static void map_file(struct file *file)
{
    char path[64], doing[NAMEDATALEN + 64];
    int fd, error, reason;
    snprintf(doing, sizeof doing, "the filter \"%.64s\" in perhaps.folder", file->name);
    fd = open_regular(file->name, &file->at_open);
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    error = perhaps_open(path, NULL, &file->loaded.filter);
    reason = errno;
    close(fd);
    if (error) {
        errno = reason;
        fail(error, doing);
    }
    file->loaded.is_bitmap = !strcmp(perhaps_kind_of(file->loaded.filter)->name, "bitmap");
    file->loaded.ignores_case =
        perhaps_note_says(perhaps_note(file->loaded.filter), "ignore-case");
}

static bool is_still_there(const struct file *file)
{
    const struct stat *was = &file->at_open;
    char path[MAXPGPATH];
    struct stat st;
    snprintf(path, sizeof path, "%s/%s", file->folder, file->name);
    return !lstat(path, &st) && st.st_dev == was->st_dev && st.st_ino == was->st_ino &&
           st.st_size == was->st_size && st.st_mtim.tv_sec == was->st_mtim.tv_sec &&
           st.st_mtim.tv_nsec == was->st_mtim.tv_nsec;
}

/* Takes a file off the list: the one of this name, or the last one if the list is full. */
static struct file *take(const char *name)
{
    struct file **at = &files;
    int n = 0;
    while (*at &&
           (strcmp((*at)->name, name) != 0 || strcmp((*at)->folder, folder_setting) != 0)) {
        struct file *last = *at;
        if (++n == FILES_MOST) {
            *at = NULL;
            close_file(last);
            break;
        }
        at = &last->next;
    }
    struct file *file = *at;
    if (file)
        *at = file->next;
    return file;
}

static const struct loaded *find(const char *name)
{
    const TimestampTz now = GetCurrentStatementStartTimestamp();
    struct file *file;
    if (files && files->looked == now && !strcmp(files->name, name) &&
        !strcmp(files->folder, folder_setting))
        return &files->loaded;
    check_name(name);
    file = take(name);
    if (file && file->looked != now && !is_still_there(file)) {
        close_file(file);
        file = NULL;
    }
    if (!file) {
        file = MemoryContextAllocZero(TopMemoryContext, sizeof *file);
        file->folder = MemoryContextStrdup(TopMemoryContext, folder_setting);
        file->name = MemoryContextStrdup(TopMemoryContext, name);
    }
    file->next = files;
    files = file;
    if (!file->loaded.filter)
        map_file(file);
    file->looked = now;
    return &file->loaded;
}

PG_FUNCTION_INFO_V1(pg_perhaps_contains_file);
Datum pg_perhaps_contains_file(PG_FUNCTION_ARGS)
{
    struct site *site = site_of(fcinfo, 1);
    char *name = text_to_cstring(PG_GETARG_TEXT_PP(0));
    const struct loaded *loaded = find(name);
    pfree(name);
    PG_RETURN_BOOL(ask(site, loaded, PG_GETARG_DATUM(1)));
}
