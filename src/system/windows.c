/* windows.c - Windows, from 7 on: files, and pages of memory.
 *
 * Files are descriptors of the C library, since perhaps_save_to() takes one, and are opened so
 * that they can be renamed and replaced meanwhile, as elsewhere: from Windows 10 on (1607);
 * older ones, and wine, replace no file that is open, and none replaces one that is mapped.
 * Then a save ends with an error, and a live file cannot be opened to write.  Paths are
 * UTF-8. */
#include "system.h"

#ifdef SYSTEM_WINDOWS

#include <errno.h>
#include <fcntl.h>
#include <io.h>
#include <perhaps.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define WIN32_LEAN_AND_MEAN 1
#include <windows.h>

/* ---- Errors ------------------------------------------------------------------------------ */

/* Sets errno to what POSIX calls the last error of Windows.  Returns PERHAPS_ERR_IO. */
static int failed(void)
{
    static const struct {
        DWORD windows;
        int posix;
    } table[] = {
        { ERROR_FILE_NOT_FOUND, ENOENT },      { ERROR_PATH_NOT_FOUND, ENOENT },
        { ERROR_INVALID_NAME, ENOENT },        { ERROR_ACCESS_DENIED, EACCES },
        { ERROR_SHARING_VIOLATION, EBUSY },    { ERROR_USER_MAPPED_FILE, EBUSY },
        { ERROR_LOCK_VIOLATION, EWOULDBLOCK }, { ERROR_IO_PENDING, EWOULDBLOCK },
        { ERROR_FILE_EXISTS, EEXIST },         { ERROR_ALREADY_EXISTS, EEXIST },
        { ERROR_DISK_FULL, ENOSPC },           { ERROR_HANDLE_DISK_FULL, ENOSPC },
        { ERROR_NOT_ENOUGH_MEMORY, ENOMEM },   { ERROR_OUTOFMEMORY, ENOMEM },
        { ERROR_COMMITMENT_LIMIT, ENOMEM },    { ERROR_DIRECTORY, ENOTDIR },
        { ERROR_TOO_MANY_OPEN_FILES, EMFILE }, { ERROR_FILENAME_EXCED_RANGE, ENAMETOOLONG },
        { ERROR_INVALID_FUNCTION, EINVAL },    { ERROR_INVALID_HANDLE, EBADF },
    };
    const DWORD error = GetLastError();
    errno = EIO;
    for (size_t i = 0; i < sizeof table / sizeof *table; i++)
        if (table[i].windows == error)
            errno = table[i].posix;
    return PERHAPS_ERR_IO;
}

static HANDLE handle_of(int fd)
{
    return (HANDLE)_get_osfhandle(fd);
}

/* ---- Files: their bytes ------------------------------------------------------------------ */

/* One call is asked for at most this much. */
#define CHUNK_NBYTES ((DWORD)1 << 30)

/* Where a transfer begins: NULL: where the file stands. */
static OVERLAPPED *place_of(OVERLAPPED *place, const uint64_t *at, uint64_t done)
{
    if (!at)
        return NULL;
    *place = (OVERLAPPED){ 0 };
    place->Offset = (DWORD)(*at + done);
    place->OffsetHigh = (DWORD)((*at + done) >> 32);
    return place;
}

static int write_all(int fd, const uint8_t *bytes, uint64_t nbytes, const uint64_t *at)
{
    OVERLAPPED place;
    DWORD n;
    for (uint64_t done = 0; done < nbytes; done += n) {
        const DWORD some = nbytes - done < CHUNK_NBYTES ? (DWORD)(nbytes - done) : CHUNK_NBYTES;
        if (!WriteFile(handle_of(fd), bytes + done, some, &n, place_of(&place, at, done)))
            return failed();
    }
    return 0;
}

/* The end of a file, and of a pipe, are no errors. */
static int read_all(int fd, uint8_t *bytes, uint64_t nbytes, const uint64_t *at, uint64_t *done)
{
    OVERLAPPED place;
    DWORD n = 1;
    for (*done = 0; *done < nbytes && n; *done += n) {
        const uint64_t left = nbytes - *done;
        const DWORD some = left < CHUNK_NBYTES ? (DWORD)left : CHUNK_NBYTES;
        if (ReadFile(handle_of(fd), bytes + *done, some, &n, place_of(&place, at, *done)))
            continue;
        const DWORD error = GetLastError();
        if (error != ERROR_HANDLE_EOF && error != ERROR_BROKEN_PIPE)
            return failed();
        break;
    }
    return 0;
}

int write_on(int fd, const void *bytes, uint64_t nbytes)
{
    return write_all(fd, bytes, nbytes, NULL);
}

int write_at(int fd, const void *bytes, uint64_t nbytes, uint64_t at)
{
    return write_all(fd, bytes, nbytes, &at);
}

int read_on(int fd, void *bytes, uint64_t nbytes, uint64_t *done)
{
    return read_all(fd, bytes, nbytes, NULL, done);
}

int read_some(int fd, void *bytes, uint64_t nbytes, uint64_t at, uint64_t *done)
{
    return read_all(fd, bytes, nbytes, &at, done);
}

int read_at(int fd, void *bytes, uint64_t nbytes, uint64_t at)
{
    uint64_t done;
    int error = read_some(fd, bytes, nbytes, at, &done);
    if (error || done == nbytes)
        return error;
    errno = EIO;
    return PERHAPS_ERR_IO;
}

int rewind_file(int fd)
{
    return SetFilePointerEx(handle_of(fd), (LARGE_INTEGER){ 0 }, NULL, FILE_BEGIN) ? 0
                                                                                   : failed();
}

/* A pipe has nothing to sync. */
int sync_file(int fd)
{
    if (FlushFileBuffers(handle_of(fd)))
        return 0;
    failed();
    if (GetFileType(handle_of(fd)) != FILE_TYPE_DISK)
        errno = EINVAL;
    return -1;
}

int sync_data(int fd)
{
    return sync_file(fd);
}

int cut_file(int fd, uint64_t nbytes)
{
    FILE_END_OF_FILE_INFO end;
    end.EndOfFile.QuadPart = (LONGLONG)nbytes;
    if (SetFileInformationByHandle(handle_of(fd), FileEndOfFileInfo, &end, sizeof end))
        return 0;
    failed();
    return -1;
}

int reserve_file(int fd, uint64_t from, uint64_t nbytes)
{
    (void)fd, (void)from, (void)nbytes;
    return PERHAPS_ERR_UNSUPPORTED;
}

/* NTFS has room for all bytes of a file that is not sparse. */
int reserve_mapped(int fd, uint64_t nbytes)
{
    (void)fd, (void)nbytes;
    return 0;
}

bool add_zeros(int fd, uint64_t at, size_t nbytes)
{
    (void)fd, (void)at, (void)nbytes;
    return false;
}

uint64_t behind_hole(int fd, uint64_t at, uint64_t end)
{
    (void)fd, (void)end;
    return at;
}

void forget_bytes(int fd, uint64_t at, uint64_t nbytes)
{
    (void)fd, (void)at, (void)nbytes;
}

/* ---- Files: to open and to name ---------------------------------------------------------- */

/* Writes a path as Windows has it. */
static bool to_wide(const char *path, wchar_t wide[PATH_NBYTES_MOST])
{
    if (MultiByteToWideChar(CP_UTF8, MB_ERR_INVALID_CHARS, path, -1, wide, PATH_NBYTES_MOST))
        return true;
    errno = GetLastError() == ERROR_INSUFFICIENT_BUFFER ? ENAMETOOLONG : EILSEQ;
    return false;
}

/* Opens a file as CreateFileW() does.  Returns NULL after an error (errno). */
static HANDLE open_handle(const char *path, DWORD access, DWORD how, DWORD flags)
{
    wchar_t wide[PATH_NBYTES_MOST];
    if (!to_wide(path, wide))
        return NULL;
    HANDLE handle =
        CreateFileW(wide, access, FILE_SHARE_READ | FILE_SHARE_WRITE | FILE_SHARE_DELETE, NULL,
                    how, flags, NULL);
    if (handle != INVALID_HANDLE_VALUE)
        return handle;
    failed();
    return NULL;
}

static int open_file(const char *path, DWORD access, DWORD how, DWORD flags)
{
    HANDLE handle = open_handle(path, access, how, flags);
    if (!handle)
        return -1;
    int fd = _open_osfhandle((intptr_t)handle, _O_BINARY | _O_NOINHERIT);
    if (fd < 0)
        CloseHandle(handle);
    return fd;
}

int open_at_once(const char *path, bool write)
{
    return open_file(path, write ? GENERIC_READ | GENERIC_WRITE : GENERIC_READ, OPEN_EXISTING,
                     FILE_FLAG_BACKUP_SEMANTICS); /* which folders need */
}

int open_to_write(const char *path)
{
    return open_file(path, GENERIC_WRITE, OPEN_EXISTING, 0);
}

int create_file(const char *path)
{
    return open_file(path, GENERIC_READ | GENERIC_WRITE | DELETE, CREATE_NEW,
                     FILE_ATTRIBUTE_NORMAL);
}

int open_or_create(const char *path, unsigned mode)
{
    (void)mode;
    return open_file(path, GENERIC_READ | GENERIC_WRITE, OPEN_ALWAYS, FILE_ATTRIBUTE_NORMAL);
}

bool has_no_nameless(int error)
{
    return error == ENOTSUP;
}

int create_nameless(const char *folder)
{
    (void)folder;
    errno = ENOTSUP;
    return -1;
}

int name_nameless(int fd, const char *name)
{
    (void)fd, (void)name;
    errno = ENOTSUP;
    return PERHAPS_ERR_IO;
}

int open_temporary(const char *folder)
{
    char path[PATH_NBYTES_MOST];
    uint32_t random;
    if (random_bytes(&random, sizeof random))
        return -1;
    int n = snprintf(path, sizeof path, "%s/perhaps.%08x", folder, (unsigned)random);
    if (n < 0 || (size_t)n >= sizeof path) {
        errno = ENAMETOOLONG;
        return -1;
    }
    return open_file(path, GENERIC_READ | GENERIC_WRITE | DELETE, CREATE_NEW,
                     FILE_ATTRIBUTE_TEMPORARY | FILE_FLAG_DELETE_ON_CLOSE);
}

int duplicate(int fd)
{
    return _dup(fd);
}

void close_file(int fd)
{
    int saved = errno;
    _close(fd);
    errno = saved;
}

static int move_file(const char *from, const char *to, DWORD how)
{
    wchar_t wide_from[PATH_NBYTES_MOST], wide_to[PATH_NBYTES_MOST];
    if (!to_wide(from, wide_from) || !to_wide(to, wide_to))
        return PERHAPS_ERR_IO;
    return MoveFileExW(wide_from, wide_to, how | MOVEFILE_WRITE_THROUGH) ? 0 : failed();
}

/* What SetFileInformationByHandle() takes as FileRenameInfoEx, which older headers lack. */
struct renaming {
    DWORD flags;
    HANDLE root;
    DWORD nbytes; /* of the name */
    wchar_t name[PATH_NBYTES_MOST];
};

/* Renames as POSIX does: also onto a file that is open.  From Windows 10 on (1607). */
static bool rename_as_posix(const char *from, const char *to)
{
    enum { RENAME_INFO_EX = 22, REPLACE_IF_EXISTS = 1, POSIX_SEMANTICS = 2 };
    struct renaming renaming = { .flags = REPLACE_IF_EXISTS | POSIX_SEMANTICS };
    wchar_t wide[PATH_NBYTES_MOST];
    if (!to_wide(to, wide) || !GetFullPathNameW(wide, PATH_NBYTES_MOST, renaming.name, NULL))
        return false;
    renaming.nbytes = (DWORD)(wcslen(renaming.name) * sizeof *wide);
    HANDLE handle = open_handle(from, DELETE | SYNCHRONIZE, OPEN_EXISTING, 0);
    if (!handle)
        return false;
    const bool done = SetFileInformationByHandle(
        handle, (FILE_INFO_BY_HANDLE_CLASS)RENAME_INFO_EX, &renaming, sizeof renaming);
    CloseHandle(handle);
    return done;
}

int rename_file(const char *from, const char *to)
{
    return rename_as_posix(from, to) ? 0 : move_file(from, to, MOVEFILE_REPLACE_EXISTING);
}

int rename_new(const char *from, const char *to)
{
    return move_file(from, to, 0);
}

void remove_file(const char *path)
{
    wchar_t wide[PATH_NBYTES_MOST];
    int saved = errno;
    if (to_wide(path, wide))
        DeleteFileW(wide);
    errno = saved;
}

/* NTFS keeps names in a journal of its own. */
int sync_folder(const char *folder)
{
    (void)folder;
    return 0;
}

int real_path(const char *path, char real[PATH_NBYTES_MOST])
{
    wchar_t wide[PATH_NBYTES_MOST], full[PATH_NBYTES_MOST];
    if (!to_wide(path, wide))
        return PERHAPS_ERR_IO;
    if (GetFileAttributesW(wide) == INVALID_FILE_ATTRIBUTES)
        return failed();
    const DWORD n = GetFullPathNameW(wide, PATH_NBYTES_MOST, full, NULL);
    if (n && n < PATH_NBYTES_MOST &&
        WideCharToMultiByte(CP_UTF8, 0, full, -1, real, PATH_NBYTES_MOST, NULL, NULL))
        return 0;
    errno = ENAMETOOLONG;
    return PERHAPS_ERR_IO;
}

/* Links are followed by Windows, and are replaced as files. */
long read_link(const char *path, char *to, size_t room)
{
    (void)path, (void)to, (void)room;
    errno = EINVAL;
    return -1;
}

const char *name_in(const char *path)
{
    const char *name = path;
    for (; *path; path++)
        if (*path == '/' || *path == '\\' || *path == ':')
            name = path + 1;
    return name;
}

const char *temporary_folder(void)
{
    static const char *const names[] = { "TMPDIR", "TEMP", "TMP" };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const char *folder = getenv(names[i]);
        if (folder && *folder)
            return folder;
    }
    return ".";
}

/* ---- Files: which, and whose ------------------------------------------------------------- */

static int look_at_handle(HANDLE handle, struct file_info *info)
{
    BY_HANDLE_FILE_INFORMATION about;
    *info = (struct file_info){ .type = FILE_OTHER, .mode = 0666 };
    if (GetFileType(handle) != FILE_TYPE_DISK)
        return 0;
    if (!GetFileInformationByHandle(handle, &about))
        return failed();
    info->type = about.dwFileAttributes & FILE_ATTRIBUTE_DIRECTORY ? FILE_FOLDER : FILE_REGULAR;
    info->nbytes = (uint64_t)about.nFileSizeHigh << 32 | about.nFileSizeLow;
    info->device = about.dwVolumeSerialNumber;
    info->number = (uint64_t)about.nFileIndexHigh << 32 | about.nFileIndexLow;
    return 0;
}

int look_at_path(const char *path, struct file_info *info)
{
    HANDLE handle = open_handle(path, 0, OPEN_EXISTING, FILE_FLAG_BACKUP_SEMANTICS);
    if (!handle)
        return PERHAPS_ERR_IO;
    int error = look_at_handle(handle, info);
    CloseHandle(handle);
    return error;
}

int look_at_fd(int fd, struct file_info *info)
{
    return look_at_handle(handle_of(fd), info);
}

static DWORD attributes_of(const char *path)
{
    wchar_t wide[PATH_NBYTES_MOST];
    return to_wide(path, wide) ? GetFileAttributesW(wide) : INVALID_FILE_ATTRIBUTES;
}

bool is_free(const char *path)
{
    return attributes_of(path) == INVALID_FILE_ATTRIBUTES;
}

bool may_write(const char *path)
{
    const DWORD attributes = attributes_of(path);
    if (attributes == INVALID_FILE_ATTRIBUTES)
        return !failed();
    errno = EACCES;
    return !(attributes & FILE_ATTRIBUTE_READONLY);
}

/* A file inherits its rights from its folder. */
int give_owner(int fd, const struct file_info *like)
{
    (void)fd, (void)like;
    return 0;
}

/* Windows locks bytes, and keeps others from these.  So it is one far behind the end of any
 * file. */
static int lock_file(int fd, DWORD how)
{
    OVERLAPPED place = { .OffsetHigh = 0x40000000 };
    UnlockFileEx(handle_of(fd), 0, 1, 0, &place); /* locks of one handle add up */
    place = (OVERLAPPED){ .OffsetHigh = 0x40000000 };
    return LockFileEx(handle_of(fd), how, 0, 1, 0, &place) ? 0 : failed();
}

int lock_shared(int fd)
{
    return lock_file(fd, 0);
}

int lock_alone(int fd)
{
    return lock_file(fd, LOCKFILE_EXCLUSIVE_LOCK | LOCKFILE_FAIL_IMMEDIATELY);
}

void unlock_file(int fd)
{
    OVERLAPPED place = { .OffsetHigh = 0x40000000 };
    UnlockFileEx(handle_of(fd), 0, 1, 0, &place);
}

/* ---- Pages of memory --------------------------------------------------------------------- */

void *map_pages(size_t nbytes)
{
    return VirtualAlloc(NULL, nbytes, MEM_RESERVE | MEM_COMMIT, PAGE_READWRITE);
}

void unmap_pages(void *memory, size_t nbytes)
{
    (void)nbytes;
    VirtualFree(memory, 0, MEM_RELEASE);
}

uint64_t huge_nbytes(const void *memory, uint64_t nbytes)
{
    (void)memory, (void)nbytes;
    return 0;
}

/* Maps a file, at this address if that is not NULL. */
static uint8_t *map_at(void *at, int fd, size_t nbytes, DWORD protection, DWORD access)
{
    HANDLE file = CreateFileMappingW(handle_of(fd), NULL, protection, 0, 0, NULL);
    uint8_t *map = file ? MapViewOfFileEx(file, access, 0, 0, nbytes, at) : NULL;
    if (!map)
        failed();
    if (file)
        CloseHandle(file); /* the view keeps it */
    return map;
}

uint8_t *map_file(int fd, size_t nbytes, bool write)
{
    return write ? map_at(NULL, fd, nbytes, PAGE_READWRITE, FILE_MAP_WRITE)
                 : map_at(NULL, fd, nbytes, PAGE_READONLY, FILE_MAP_READ);
}

/* Another thread may take the addresses that were found, so it tries again. */
uint8_t *map_twice(int fd, size_t nbytes, size_t behind)
{
    enum { TRIES = 16 };
    for (int i = 0; i < TRIES; i++) {
        uint8_t *at = VirtualAlloc(NULL, behind + nbytes, MEM_RESERVE, PAGE_NOACCESS);
        if (!at) {
            failed();
            break;
        }
        VirtualFree(at, 0, MEM_RELEASE);
        uint8_t *map = map_at(at, fd, nbytes, PAGE_WRITECOPY, FILE_MAP_COPY);
        if (!map)
            continue;
        if (map_at(map + behind, fd, nbytes, PAGE_READONLY, FILE_MAP_READ))
            return map;
        UnmapViewOfFile(map);
    }
    return NULL;
}

void unmap(uint8_t *map, size_t nbytes, size_t behind)
{
    (void)nbytes;
    UnmapViewOfFile(map);
    if (behind)
        UnmapViewOfFile(map + behind);
}

void map_to_pages(uint8_t *map, size_t nbytes)
{
    (void)map, (void)nbytes;
}

int sync_map(int fd, uint8_t *map, size_t nbytes)
{
    return FlushViewOfFile(map, nbytes) && FlushFileBuffers(handle_of(fd)) ? 0 : failed();
}

void map_advise(uint8_t *map, size_t nbytes, enum map_order order)
{
    (void)map, (void)nbytes, (void)order;
}

bool map_fetch(uint8_t *map, uint64_t at, uint64_t nbytes)
{
    (void)map, (void)at, (void)nbytes;
    return false;
}

int map_read(uint8_t *map, uint64_t at, uint64_t nbytes)
{
    (void)map, (void)at, (void)nbytes;
    return 0;
}

long disk_faults(void)
{
    return 0;
}

#endif
