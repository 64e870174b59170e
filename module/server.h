/* server.h - what this module uses of the server's interface for modules.
 *
 * Redis and Valkey have one binary interface for modules, and look functions up by name.
 * Debian packages no header of it, and ours declares no more than is used here: types, numbers,
 * and in 'server' one pointer for each function.  The names of functions, types and members are
 * the server's.
 *
 * Functions marked OPTIONAL below are not in every server from Redis 7.0 on: they are NULL
 * then, and a caller asks first.  All others are there, or the module refuses to load. */
#ifndef SERVER_H
#define SERVER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct RedisModuleCtx RedisModuleCtx;
typedef struct RedisModuleKey RedisModuleKey;
typedef struct RedisModuleString RedisModuleString;
typedef struct RedisModuleType RedisModuleType;
typedef struct RedisModuleIO RedisModuleIO;
typedef struct RedisModuleDigest RedisModuleDigest;
typedef struct RedisModuleDefragCtx RedisModuleDefragCtx;
typedef struct RedisModuleInfoCtx RedisModuleInfoCtx;
typedef struct RedisModuleCommand RedisModuleCommand;
typedef struct RedisModuleCallReply RedisModuleCallReply;
typedef struct RedisModuleServerInfoData RedisModuleServerInfoData;
typedef struct RedisModuleKeyOptCtx RedisModuleKeyOptCtx;

enum { SERVER_OK = 0, SERVER_ERR = 1 };

/* OpenKey() */
enum { MODE_READ = 1 << 0, MODE_WRITE = 1 << 1 };

/* KeyType() */
enum { KEYTYPE_EMPTY = 0, KEYTYPE_STRING = 1, KEYTYPE_MODULE = 6 };

/* CallReplyType() */
enum { REPLY_STRING = 0, REPLY_ERROR = 1, REPLY_INTEGER = 2 };

/* ReplyWithArray() with a length that is set later */
enum { POSTPONED_LEN = -1 };

/* GetContextFlags() */
enum {
    CTX_LUA = 1 << 0,
    CTX_MULTI = 1 << 1,
    CTX_MASTER = 1 << 2,
    CTX_CLUSTER = 1 << 5,
    CTX_MAXMEMORY = 1 << 8,
    CTX_EVICT = 1 << 9,       /* keys may be thrown away to make room */
    CTX_REPLICATED = 1 << 12, /* the master sent the command */
    CTX_LOADING = 1 << 13,    /* from an AOF or RDB */
    CTX_RESP3 = 1 << 22,
    CTX_ASYNC_LOADING = 1 << 23,
};

/* SetModuleOptions() */
enum {
    OPTION_HANDLE_IO_ERRORS = 1 << 0,
    OPTION_NO_IMPLICIT_SIGNAL_MODIFIED = 1 << 1, /* SignalModifiedKey() does it */
    OPTION_HANDLE_REPL_ASYNC_LOAD = 1 << 2,
    OPTION_VALKEY_ATOMIC_SLOT_MIGRATION = 1 << 5, /* HANDLE_ATOMIC_SLOT_MIGRATION, of Valkey */
};

/* NotifyKeyspaceEvent() */
enum { NOTIFY_STRING = 1 << 3, NOTIFY_MODULE = 1 << 13 };

/* Register...Config() */
enum { CONFIG_DEFAULT = 0, CONFIG_UNPREFIXED = 1 << 9 };

/* SetCommandInfo() */
enum {
    ARG_STRING,
    ARG_INTEGER,
    ARG_DOUBLE,
    ARG_KEY,
    ARG_PATTERN,
    ARG_UNIX_TIME,
    ARG_PURE_TOKEN,
    ARG_ONEOF,
    ARG_BLOCK,
};
enum {
    ARG_FLAG_OPTIONAL = 1 << 0,
    ARG_FLAG_MULTIPLE = 1 << 1,
    ARG_FLAG_MULTIPLE_TOKEN = 1 << 2
};
enum { SEARCH_INDEX = 2, SEARCH_KEYWORD = 3 };
enum { KEYS_RANGE = 2, KEYS_KEYNUM = 3 };
enum {
    KEY_RO = 1 << 0,
    KEY_RW = 1 << 1,
    KEY_OW = 1 << 2,
    KEY_RM = 1 << 3,
    KEY_ACCESS = 1 << 4,
    KEY_UPDATE = 1 << 5,
    KEY_INSERT = 1 << 6,
    KEY_DELETE = 1 << 7,
};

typedef struct RedisModuleCommandArg {
    const char *name;
    int type;
    int key_spec_index; /* of a key; else -1 */
    const char *token;
    const char *summary;
    const char *since;
    int flags;
    const char *deprecated_since;
    const struct RedisModuleCommandArg *subargs;
    const char *display_text;
} RedisModuleCommandArg;

typedef struct {
    const char *since;
    const char *changes;
} RedisModuleCommandHistoryEntry;

typedef struct {
    const char *notes;
    uint64_t flags;
    int begin_search_type;
    union {
        struct {
            int pos;
        } index;
        struct {
            const char *keyword;
            int startfrom;
        } keyword;
    } bs;
    int find_keys_type;
    union {
        struct {
            int lastkey, keystep, limit;
        } range;
        struct {
            int keynumidx, firstkey, keystep;
        } keynum;
    } fk;
} RedisModuleCommandKeySpec;

typedef struct {
    int version;
    size_t sizeof_historyentry;
    size_t sizeof_keyspec;
    size_t sizeof_arg;
} RedisModuleCommandInfoVersion;

typedef struct {
    const RedisModuleCommandInfoVersion *version;
    const char *summary;
    const char *complexity;
    const char *since;
    const RedisModuleCommandHistoryEntry *history;
    const char *tips;
    int arity;
    const RedisModuleCommandKeySpec *key_specs;
    const RedisModuleCommandArg *args;
} RedisModuleCommandInfo;

typedef int command_function(RedisModuleCtx *ctx, RedisModuleString **argv, int argc);

/* What a data type does.  Members that are NULL do nothing; those behind 'version' that the
 * server does not know are ignored. */
enum { TYPE_METHODS_VERSION = 4 };

typedef struct {
    uint64_t version;
    void *(*rdb_load)(RedisModuleIO *rdb, int encver);
    void (*rdb_save)(RedisModuleIO *rdb, void *value);
    void (*aof_rewrite)(RedisModuleIO *aof, RedisModuleString *key, void *value);
    size_t (*mem_usage)(const void *value);
    void (*digest)(RedisModuleDigest *digest, void *value);
    void (*free)(void *value);
    int (*aux_load)(RedisModuleIO *rdb, int encver, int when);
    void (*aux_save)(RedisModuleIO *rdb, int when);
    int aux_save_triggers;
    size_t (*free_effort)(RedisModuleString *key, const void *value);
    void (*unlink)(RedisModuleString *key, const void *value);
    void *(*copy)(RedisModuleString *from, RedisModuleString *to, const void *value);
    int (*defrag)(RedisModuleDefragCtx *ctx, RedisModuleString *key, void **value);
    size_t (*mem_usage2)(RedisModuleKeyOptCtx *ctx, const void *value, size_t sample_size);
    size_t (*free_effort2)(RedisModuleKeyOptCtx *ctx, const void *value);
    void (*unlink2)(RedisModuleKeyOptCtx *ctx, const void *value);
    void *(*copy2)(RedisModuleKeyOptCtx *ctx, const void *value);
    void (*aux_save2)(RedisModuleIO *rdb, int when);
} RedisModuleTypeMethods;

typedef RedisModuleString *config_get_string(const char *name, void *context);
typedef int config_set_string(const char *name, RedisModuleString *value, void *context,
                              RedisModuleString **error);
typedef int config_apply(RedisModuleCtx *ctx, void *context, RedisModuleString **error);

/* REQUIRED(result, name, parameters) and OPTIONAL(...): the functions. */
#define SERVER_FUNCTIONS(REQUIRED, OPTIONAL)                                                   \
    REQUIRED(void *, Alloc, (size_t nbytes))                                                   \
    REQUIRED(void *, Calloc, (size_t count, size_t nbytes))                                    \
    REQUIRED(void, Free, (void *memory))                                                       \
    OPTIONAL(void *, TryAlloc, (size_t nbytes))                                                \
    OPTIONAL(void *, TryCalloc, (size_t count, size_t nbytes))                                 \
    OPTIONAL(size_t, MallocSize, (void *memory))                                               \
    REQUIRED(void, SetModuleAttribs,                                                           \
             (RedisModuleCtx * ctx, const char *name, int version, int api_version))           \
    REQUIRED(int, IsModuleNameBusy, (const char *name))                                        \
    REQUIRED(void, SetModuleOptions, (RedisModuleCtx * ctx, int options))                      \
    REQUIRED(int, CreateCommand,                                                               \
             (RedisModuleCtx * ctx, const char *name, command_function *run,                   \
              const char *flags, int first_key, int last_key, int key_step))                   \
    OPTIONAL(RedisModuleCommand *, GetCommand, (RedisModuleCtx * ctx, const char *name))       \
    OPTIONAL(int, SetCommandInfo,                                                              \
             (RedisModuleCommand * command, const RedisModuleCommandInfo *info))               \
    OPTIONAL(int, AddACLCategory, (RedisModuleCtx * ctx, const char *name))                    \
    OPTIONAL(int, SetCommandACLCategories,                                                     \
             (RedisModuleCommand * command, const char *categories))                           \
    REQUIRED(int, WrongArity, (RedisModuleCtx * ctx))                                          \
    REQUIRED(int, ReplyWithLongLong, (RedisModuleCtx * ctx, long long value))                  \
    REQUIRED(int, ReplyWithError, (RedisModuleCtx * ctx, const char *text))                    \
    REQUIRED(int, ReplyWithSimpleString, (RedisModuleCtx * ctx, const char *text))             \
    REQUIRED(int, ReplyWithArray, (RedisModuleCtx * ctx, long count))                          \
    REQUIRED(void, ReplySetArrayLength, (RedisModuleCtx * ctx, long count))                    \
    REQUIRED(int, ReplyWithStringBuffer,                                                       \
             (RedisModuleCtx * ctx, const char *bytes, size_t nbytes))                         \
    REQUIRED(int, ReplyWithNull, (RedisModuleCtx * ctx))                                       \
    REQUIRED(int, ReplyWithDouble, (RedisModuleCtx * ctx, double value))                       \
    OPTIONAL(int, ReplyWithMap, (RedisModuleCtx * ctx, long count))                            \
    OPTIONAL(int, ReplyWithBool, (RedisModuleCtx * ctx, int value))                            \
    REQUIRED(RedisModuleString *, CreateString,                                                \
             (RedisModuleCtx * ctx, const char *bytes, size_t nbytes))                         \
    REQUIRED(void, FreeString, (RedisModuleCtx * ctx, RedisModuleString * string))             \
    REQUIRED(const char *, StringPtrLen, (const RedisModuleString *string, size_t *nbytes))    \
    REQUIRED(int, StringToLongLong, (const RedisModuleString *string, long long *value))       \
    REQUIRED(int, StringToDouble, (const RedisModuleString *string, double *value))            \
    REQUIRED(RedisModuleKey *, OpenKey,                                                        \
             (RedisModuleCtx * ctx, RedisModuleString * name, int mode))                       \
    REQUIRED(void, CloseKey, (RedisModuleKey * key))                                           \
    REQUIRED(int, KeyType, (RedisModuleKey * key))                                             \
    REQUIRED(size_t, ValueLength, (RedisModuleKey * key))                                      \
    REQUIRED(char *, StringDMA, (RedisModuleKey * key, size_t * nbytes, int mode))             \
    REQUIRED(                                                                                  \
        RedisModuleType *, CreateDataType,                                                     \
        (RedisModuleCtx * ctx, const char *name, int encver, RedisModuleTypeMethods *methods)) \
    REQUIRED(int, ModuleTypeSetValue,                                                          \
             (RedisModuleKey * key, RedisModuleType * type, void *value))                      \
    REQUIRED(RedisModuleType *, ModuleTypeGetType, (RedisModuleKey * key))                     \
    REQUIRED(void *, ModuleTypeGetValue, (RedisModuleKey * key))                               \
    REQUIRED(int, IsIOError, (RedisModuleIO * io))                                             \
    REQUIRED(void, SaveUnsigned, (RedisModuleIO * io, uint64_t value))                         \
    REQUIRED(uint64_t, LoadUnsigned, (RedisModuleIO * io))                                     \
    REQUIRED(void, SaveStringBuffer, (RedisModuleIO * io, const char *bytes, size_t nbytes))   \
    REQUIRED(char *, LoadStringBuffer, (RedisModuleIO * io, size_t * nbytes))                  \
    REQUIRED(void, SaveDouble, (RedisModuleIO * io, double value))                             \
    REQUIRED(double, LoadDouble, (RedisModuleIO * io))                                         \
    REQUIRED(void, EmitAOF,                                                                    \
             (RedisModuleIO * io, const char *command, const char *format, ...))               \
    REQUIRED(void, LogIOError,                                                                 \
             (RedisModuleIO * io, const char *level, const char *format, ...))                 \
    REQUIRED(void, Log, (RedisModuleCtx * ctx, const char *level, const char *format, ...))    \
    REQUIRED(void, DigestAddStringBuffer,                                                      \
             (RedisModuleDigest * digest, const char *bytes, size_t nbytes))                   \
    REQUIRED(void, DigestAddLongLong, (RedisModuleDigest * digest, long long value))           \
    REQUIRED(void, DigestEndSequence, (RedisModuleDigest * digest))                            \
    REQUIRED(int, Replicate,                                                                   \
             (RedisModuleCtx * ctx, const char *command, const char *format, ...))             \
    REQUIRED(int, ReplicateVerbatim, (RedisModuleCtx * ctx))                                   \
    REQUIRED(RedisModuleCallReply *, Call,                                                     \
             (RedisModuleCtx * ctx, const char *command, const char *format, ...))             \
    REQUIRED(int, CallReplyType, (RedisModuleCallReply * reply))                               \
    REQUIRED(long long, CallReplyInteger, (RedisModuleCallReply * reply))                      \
    REQUIRED(void, FreeCallReply, (RedisModuleCallReply * reply))                              \
    REQUIRED(int, GetContextFlags, (RedisModuleCtx * ctx))                                     \
    OPTIONAL(int, MustObeyClient, (RedisModuleCtx * ctx))                                      \
    REQUIRED(long long, Milliseconds, (void))                                                  \
    REQUIRED(int, SignalModifiedKey, (RedisModuleCtx * ctx, RedisModuleString * name))         \
    REQUIRED(int, NotifyKeyspaceEvent,                                                         \
             (RedisModuleCtx * ctx, int type, const char *event, RedisModuleString *key))      \
    OPTIONAL(int, RegisterStringConfig,                                                        \
             (RedisModuleCtx * ctx, const char *name, const char *value, unsigned flags,       \
              config_get_string *get, config_set_string *set, config_apply *apply,             \
              void *context))                                                                  \
    OPTIONAL(int, LoadConfigs, (RedisModuleCtx * ctx))                                         \
    REQUIRED(                                                                                  \
        int, RegisterInfoFunc,                                                                 \
        (RedisModuleCtx * ctx, void (*tell)(RedisModuleInfoCtx * info, int for_crash_report))) \
    REQUIRED(int, InfoAddSection, (RedisModuleInfoCtx * info, const char *name))               \
    REQUIRED(int, InfoAddFieldULongLong,                                                       \
             (RedisModuleInfoCtx * info, const char *field, unsigned long long value))         \
    REQUIRED(RedisModuleServerInfoData *, GetServerInfo,                                       \
             (RedisModuleCtx * ctx, const char *section))                                      \
    REQUIRED(unsigned long long, ServerInfoGetFieldUnsigned,                                   \
             (RedisModuleServerInfoData * data, const char *field, int *error))                \
    REQUIRED(void, FreeServerInfo, (RedisModuleCtx * ctx, RedisModuleServerInfoData * data))   \
    OPTIONAL(int, GetServerVersion, (void))                                                    \
    OPTIONAL(void *, DefragAlloc, (RedisModuleDefragCtx * ctx, void *memory))

/* types and names cannot stand in parentheses: NOLINTNEXTLINE(bugprone-macro-parentheses) */
#define SERVER_MEMBER(result, name, parameters) result(*name) parameters;
struct server {
    SERVER_FUNCTIONS(SERVER_MEMBER, SERVER_MEMBER)
    bool is_valkey; /* which has each function under its own name, too */
};
#undef SERVER_MEMBER

/* The functions of the server that this module runs in.  Tests fill in their own. */
extern struct server server;

/* Looks up all functions.  'ctx' is what the server passes to RedisModule_OnLoad().  Returns
 * NULL; or the name of a function that the module needs and this server does not have. */
const char *server_connect(RedisModuleCtx *ctx);

#endif
