/* unpack.c - packed formats, each by its library. */
#define ZLIB_CONST /* makes zlib take its input as const */
#include "unpack.h"

#include <bzlib.h>
#include <limits.h>
#include <lzma.h>
#include <zlib.h>
#include <zstd.h>

/* zlib and bzip2 take sizes of this type: a larger one is used up in several steps. */
static unsigned int as_uint(size_t nbytes)
{
    return nbytes < UINT_MAX ? (unsigned int)nbytes : UINT_MAX;
}

/* Moves the flow on to the places up to which a library has read and written. */
static void move_on(struct flow *flow, const void *in, void *out)
{
    flow->in_nbytes -= (size_t)((const uint8_t *)in - flow->in);
    flow->out_nbytes -= (size_t)((uint8_t *)out - flow->out);
    flow->in = in;
    flow->out = out;
}

/* ---- gzip ------------------------------------------------------------------------------ */

static enum unpacked step_gzip(void *state, struct flow *flow, bool *inside)
{
    z_stream *z = state;
    int begun = *inside ? Z_OK : z->state ? inflateReset(z) : inflateInit2(z, 16 + MAX_WBITS);
    if (begun != Z_OK)
        return NO_MEMORY;
    z->next_in = flow->in;
    z->avail_in = as_uint(flow->in_nbytes);
    z->next_out = flow->out;
    z->avail_out = as_uint(flow->out_nbytes);
    int result = inflate(z, Z_NO_FLUSH);
    move_on(flow, z->next_in, z->next_out);
    *inside = result != Z_STREAM_END;
    if (result == Z_MEM_ERROR)
        return NO_MEMORY;
    return result == Z_OK || result == Z_STREAM_END || result == Z_BUF_ERROR ? UNPACKED
                                                                             : CORRUPT;
}

static void stop_gzip(void *state)
{
    inflateEnd(state);
}

const struct unpacker unpack_gzip = { "truncated gzip data", "corrupt gzip data", true,
                                      sizeof(z_stream),      step_gzip,           stop_gzip };

/* ---- zstd ------------------------------------------------------------------------------ */

static enum unpacked step_zstd(void *state, struct flow *flow, bool *inside)
{
    ZSTD_DStream **zstd = state;
    if (!*zstd && !(*zstd = ZSTD_createDStream()))
        return NO_MEMORY;
    ZSTD_inBuffer in = { flow->in, flow->in_nbytes, 0 };
    ZSTD_outBuffer out = { flow->out, flow->out_nbytes, 0 };
    size_t result = ZSTD_decompressStream(*zstd, &out, &in);
    move_on(flow, flow->in + in.pos, flow->out + out.pos);
    *inside = result != 0;
    return ZSTD_isError(result) ? CORRUPT : UNPACKED;
}

static void stop_zstd(void *state)
{
    ZSTD_DStream **zstd = state;
    ZSTD_freeDStream(*zstd);
}

const struct unpacker unpack_zstd = { "truncated zstd data",  "corrupt zstd data", false,
                                      sizeof(ZSTD_DStream *), step_zstd,           stop_zstd };

/* ---- xz -------------------------------------------------------------------------------- */

static enum unpacked step_xz(void *state, struct flow *flow, bool *inside)
{
    lzma_stream *xz = state;
    if (!*inside && lzma_stream_decoder(xz, UINT64_MAX, 0) != LZMA_OK)
        return NO_MEMORY;
    xz->next_in = flow->in;
    xz->avail_in = flow->in_nbytes;
    xz->next_out = flow->out;
    xz->avail_out = flow->out_nbytes;
    lzma_ret result = lzma_code(xz, LZMA_RUN);
    move_on(flow, xz->next_in, xz->next_out);
    *inside = result != LZMA_STREAM_END;
    if (result == LZMA_MEM_ERROR)
        return NO_MEMORY;
    return result == LZMA_OK || result == LZMA_STREAM_END || result == LZMA_BUF_ERROR ? UNPACKED
                                                                                      : CORRUPT;
}

static void stop_xz(void *state)
{
    lzma_end(state);
}

const struct unpacker unpack_xz = { "truncated xz data", "corrupt xz data", true,
                                    sizeof(lzma_stream), step_xz,           stop_xz };

/* ---- bzip2 ----------------------------------------------------------------------------- */

static enum unpacked step_bzip2(void *state, struct flow *flow, bool *inside)
{
    bz_stream *bz = state;
    if (!*inside) {
        BZ2_bzDecompressEnd(bz); /* has no effect the first time, when nothing was begun */
        if (BZ2_bzDecompressInit(bz, 0, 0) != BZ_OK)
            return NO_MEMORY;
    }
    bz->next_in = (char *)flow->in; /* the library does not write to it */
    bz->avail_in = as_uint(flow->in_nbytes);
    bz->next_out = (char *)flow->out;
    bz->avail_out = as_uint(flow->out_nbytes);
    int result = BZ2_bzDecompress(bz);
    move_on(flow, bz->next_in, bz->next_out);
    *inside = result != BZ_STREAM_END;
    if (result == BZ_MEM_ERROR)
        return NO_MEMORY;
    return result == BZ_OK || result == BZ_STREAM_END ? UNPACKED : CORRUPT;
}

static void stop_bzip2(void *state)
{
    BZ2_bzDecompressEnd(state);
}

const struct unpacker unpack_bzip2 = {
    "truncated bzip2 data", "corrupt bzip2 data", false,
    sizeof(bz_stream),      step_bzip2,           stop_bzip2
};
