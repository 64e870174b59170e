/* perhaps.c - the version, and error numbers in English. */
#include <perhaps.h>
#ifndef PERHAPS_WITHOUT_SERVERS
#include <perhaps_cluster.h>
#endif

const char *perhaps_version(void)
{
    return PERHAPS_VERSION;
}

const char *perhaps_strerror(int error)
{
    switch (error) {
    case PERHAPS_OK:
        return "no error";
    case PERHAPS_ERR_ARGUMENT:
        return "a value is out of range (0 < fpr < 1, capacity at least 1, a known kind, "
               "keys of 16 bytes under the hash 'none', of 8 under 'none-64', integers of its "
               "range in a bitmap)";
    case PERHAPS_ERR_UNSUPPORTED:
        return "this kind of filter cannot do that: plan one that can";
    case PERHAPS_ERR_MEMORY:
        return "out of memory";
    case PERHAPS_ERR_FULL:
        return "the filter is full: plan it for more keys, or one that grows";
    case PERHAPS_ERR_COPIES:
        return "no room for one more copy of this key, of which 8 are the most (4 in the kind "
               "strided): drop repeats before adding";
    case PERHAPS_ERR_NOT_FOUND:
        return "the key to remove is not there";
    case PERHAPS_ERR_READ_ONLY:
        return "the filter is mapped read-only: open it writable";
    case PERHAPS_ERR_MISMATCH:
        return "the filters differ in kind, geometry, hash or seed: make both with the same";
    case PERHAPS_ERR_SECRET:
        return "the secret key is missing or is not this filter's";
    case PERHAPS_ERR_IO:
        return "the system refused to read or write";
    case PERHAPS_ERR_FORMAT:
        return "not a filter file";
    case PERHAPS_ERR_VERSION:
        return "made by a later version of perhaps: use that one";
    case PERHAPS_ERR_DAMAGED:
        return "the file is damaged: a length or checksum is wrong; restore it or build it "
               "anew";
    case PERHAPS_ERR_LIMIT:
        return "this kind cannot reach that error rate or size: ask for another kind";
    case PERHAPS_ERR_LAYERS:
        return "the chain has 64 layers, which is the most, and all are full: build a new one "
               "for more keys";
    case PERHAPS_ERR_VALUES:
        return "a key was given twice, with different values: give it one";
    case PERHAPS_ERR_JOURNAL:
        return "a live file, without its journal: keep F and F.journal together, or copy it "
               "with 'perhaps backup'";
    case PERHAPS_ERR_AHEAD:
        return "the time is further ahead of the clock than the window is long: look at both";
    case PERHAPS_ERR_SET:
        return "a set: it was made without removal and without counts, and stores no copies; "
               "make it anew with what you need";
    case PERHAPS_ERR_STOPPED:
        return "interrupted";
#ifndef PERHAPS_WITHOUT_SERVERS
    case PERHAPS_ERR_ADDRESS:
        return "not the address of a filter on servers: redis://host:port/name";
    case PERHAPS_ERR_UNREACHABLE:
        return "a server does not answer: look after it, or raise patience=";
    case PERHAPS_ERR_REFUSED:
        return "a server refuses: look at its password, permissions, disk and replicas";
    case PERHAPS_ERR_SERVER_FULL:
        return "a server's memory is full: raise its maxmemory or add servers";
    case PERHAPS_ERR_TAKEN:
        return "there is something of that name on the servers: choose another one";
    case PERHAPS_ERR_MISSING:
        return "there is no filter of that name on the servers: make it first";
    case PERHAPS_ERR_UNFINISHED:
        return "the filter is half made or half deleted: delete it if nobody is at it";
    case PERHAPS_ERR_LOST:
        return "the servers have lost a part of the filter: restore their data, or make it "
               "anew";
    case PERHAPS_ERR_REPLICAS:
        return "too few replicas have what was added: look after them, or lower acknowledge=";
    case PERHAPS_ERR_CHANGED:
        return "the filter was made anew since it was opened: open it again";
    case PERHAPS_ERR_PROTOCOL:
        return "a server answers what it should not: is it Redis or Valkey?";
    case PERHAPS_ERR_DEADLINE:
        return "the deadline of the call is over: look after the servers, or give it more time";
#endif
    default:
        return "unknown error";
    }
}
