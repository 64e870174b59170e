/* keys.c - values to keys: which bytes a value of an SQL type is.
 *
 * bindings/README.md has the rule: text as UTF-8, bytea as it is, integers of any width as 8
 * bytes, little-endian in two's complement, uuid as its 16 bytes. */
#include "extension.h"
#include <perhaps_file.h>

#include "catalog/pg_type.h"
#include "mb/pg_wchar.h"
#include "parser/parse_coerce.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/uuid.h"

#include <string.h>

static _Noreturn void refuse(Oid type)
{
    ereport(ERROR, (errcode(ERRCODE_DATATYPE_MISMATCH),
                    errmsg("a value of type %s is no key", format_type_be(type)),
                    errhint("Keys are text, bytea, uuid and integers: cast it to one of these, "
                            "for example by ::text or ::bigint.")));
    pg_unreachable();
}

/* citext and other types that are text by their bytes are taken as their bytes. */
static enum key_form form_of(Oid type, Oid shown)
{
    switch (type) {
    case VARCHAROID:
    case TEXTOID:
        return KEY_TEXT;
    case BPCHAROID:
        return KEY_BLANKED;
    case NAMEOID:
        return KEY_NAME;
    case BYTEAOID:
        return KEY_BYTES;
    case INT2OID:
        return KEY_INT2;
    case INT4OID:
        return KEY_INT4;
    case INT8OID:
        return KEY_INT8;
    case UUIDOID:
        return KEY_UUID;
    default:
        if (TypeCategory(type) == TYPCATEGORY_STRING && IsBinaryCoercible(type, TEXTOID))
            return KEY_TEXT;
        refuse(shown);
    }
}

void key_type_of_argument(FunctionCallInfo call, int argument, bool arrays,
                          struct key_type *type)
{
    const Oid shown = get_fn_expr_argtype(call->flinfo, argument);
    Oid base;
    if (!OidIsValid(shown))
        ereport(ERROR, (errcode(ERRCODE_INDETERMINATE_DATATYPE),
                        errmsg("the type of the key is not known in a call of this form")));
    *type = (struct key_type){ 0 };
    base = getBaseType(shown);
    type->element = arrays ? get_element_type(base) : InvalidOid;
    type->is_array = OidIsValid(type->element);
    if (type->is_array) {
        get_typlenbyvalalign(type->element, &type->element_nbytes, &type->element_by_value,
                             &type->element_align);
        base = getBaseType(type->element);
    }
    type->form = form_of(base, shown);
}

bool key_is_integer(const struct key_type *type)
{
    return type->form == KEY_INT2 || type->form == KEY_INT4 || type->form == KEY_INT8;
}

/* ---- Text ---------------------------------------------------------------------------- */

static bool is_ascii(const uint8 *text, size_t nbytes)
{
    uint8 all = 0;
    for (size_t i = 0; i < nbytes; i++)
        all |= text[i];
    return all < 128;
}

/* Sets the key to text of the database's encoding, each of which has ASCII as it is. */
static void set_text(struct key *key, const char *text, size_t nbytes)
{
    key->bytes = text;
    key->nbytes = nbytes;
    if (GetDatabaseEncoding() != PG_UTF8 && !is_ascii(key->bytes, nbytes)) {
        const char *utf8 = pg_server_to_any(text, (int)nbytes, PG_UTF8);
        if (utf8 != text) {
            key->bytes = utf8;
            key->nbytes = strlen(utf8);
        }
    }
}

/* As PostgreSQL casts char(n) to text: without the blanks that fill it up. */
static size_t without_blanks(const char *text, size_t nbytes)
{
    while (nbytes && text[nbytes - 1] == ' ')
        nbytes--;
    return nbytes;
}

/* ---- Keys ---------------------------------------------------------------------------- */

static void set_integer(struct key *key, int64 value)
{
    uint64 left = (uint64)value;
    for (unsigned i = 0; i < sizeof key->integer; i++, left >>= 8)
        key->integer[i] = (uint8)left;
    key->bytes = key->integer;
    key->nbytes = sizeof key->integer;
}

static void set_varlena(const struct key_type *type, Datum value, struct key *key)
{
    const struct varlena *v = PG_DETOAST_DATUM_PACKED(value);
    const char *bytes = VARDATA_ANY(v);
    size_t nbytes = value_nbytes(v);
    if (type->form == KEY_BYTES) {
        key->bytes = bytes;
        key->nbytes = nbytes;
    } else {
        set_text(key, bytes,
                 type->form == KEY_BLANKED ? without_blanks(bytes, nbytes) : nbytes);
    }
}

void key_of(const struct key_type *type, Datum value, struct key *key)
{
    switch (type->form) {
    case KEY_INT2:
        set_integer(key, DatumGetInt16(value));
        break;
    case KEY_INT4:
        set_integer(key, DatumGetInt32(value));
        break;
    case KEY_INT8:
        set_integer(key, DatumGetInt64(value));
        break;
    case KEY_UUID:
        key->bytes = DatumGetUUIDP(value)->data;
        key->nbytes = UUID_LEN;
        break;
    case KEY_NAME:
        set_text(key, NameStr(*DatumGetName(value)), strlen(NameStr(*DatumGetName(value))));
        break;
    default:
        set_varlena(type, value, key);
    }
}

void key_fold(const struct key_type *type, struct key *key)
{
    char *folded;
    if (key_is_integer(type) || type->form == KEY_UUID)
        return;
    folded = palloc(key->nbytes + 1);
    perhaps_fold_case(folded, key->bytes, key->nbytes);
    key->bytes = folded;
}

/* ---- Many keys ----------------------------------------------------------------------- */

/* So many bytes of keys wait at most, beside one longer key. */
enum { GATHERED_NBYTES_LEAST = 1024, GATHERED_NBYTES = 16384 };

struct gathered *gathered_create(MemoryContext context)
{
    struct gathered *keys = MemoryContextAllocZero(context, sizeof *keys);
    keys->context = context;
    return keys;
}

/* Makes room for a key.  A long one gets what it needs, since a value has less than 1 GiB. */
static void make_room(struct gathered *keys, size_t nbytes)
{
    const size_t needs = keys->offset[keys->count] + nbytes;
    size_t room = keys->room ? keys->room : GATHERED_NBYTES_LEAST;
    if (needs <= keys->room)
        return;
    while (room < needs)
        room *= 2;
    keys->bytes = keys->bytes ? repalloc_huge(keys->bytes, room)
                              : MemoryContextAllocHuge(keys->context, room);
    keys->room = (uint32)room;
}

bool gathered_append(struct gathered *keys, const struct key *key)
{
    const uint32 at = keys->offset[keys->count];
    make_room(keys, key->nbytes);
    if (key->nbytes)
        memcpy(keys->bytes + at, key->bytes, key->nbytes);
    keys->offset[++keys->count] = at + (uint32)key->nbytes;
    return keys->count == GATHERED_MOST || keys->offset[keys->count] >= GATHERED_NBYTES;
}

struct perhaps_keys gathered_keys(struct gathered *keys, bool integers)
{
    if (!integers)
        return perhaps_keys_offsets32(keys->bytes, keys->offset, keys->count);
    if (!keys->integers)
        keys->integers =
            MemoryContextAllocZero(keys->context, GATHERED_MOST * sizeof *keys->integers);
    for (uint32 i = 0; i < keys->count; i++)
        memcpy(keys->integers[i].bytes, keys->bytes + keys->offset[i], 8);
    return perhaps_keys_hashed(keys->integers, keys->count);
}
