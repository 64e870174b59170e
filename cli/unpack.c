#define ZLIB_CONST /* what zlib reads it does not write to */
#include "unpack.h"

#include <bzlib.h>
#include <limits.h>
#include <lzma.h>
#include <stdlib.h>
#include <zlib.h>
#include <zstd.h>

static unsigned int as_uint(size_t nbytes)
{
    return nbytes < UINT_MAX ? (unsigned int)nbytes : UINT_MAX;
}

/* What is left of the flow: 'in' and 'out' have been moved on. */
static void move_on(struct flow *flow, const void *in, void *out)
{
    flow->in_nbytes -= (size_t)((const uint8_t *)in - flow->in);
    flow->out_nbytes -= (size_t)((uint8_t *)out - flow->out);
    flow->in = in;
    flow->out = out;
}

/* ---- gzip ------------------------------------------------------------------------------ */

static void *start_gzip(void)
{
    z_stream *z = calloc(1, sizeof *z);
    if (z && inflateInit2(z, 16 + MAX_WBITS) != Z_OK) {
        free(z);
        z = NULL;
    }
    return z;
}

static enum unpacked step_gzip(void *state, struct flow *flow, bool *inside)
{
    z_stream *z = state;
    if (!*inside)
        inflateReset(z);
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
    free(state);
}

const struct unpacker unpack_gzip = { .truncated = "truncated gzip data",
                                      .corrupt = "corrupt gzip data",
                                      .pads = true,
                                      .start = start_gzip,
                                      .step = step_gzip,
                                      .stop = stop_gzip };

/* ---- zstd ------------------------------------------------------------------------------ */

static void *start_zstd(void)
{
    return ZSTD_createDStream();
}

static enum unpacked step_zstd(void *state, struct flow *flow, bool *inside)
{
    ZSTD_inBuffer in = { flow->in, flow->in_nbytes, 0 };
    ZSTD_outBuffer out = { flow->out, flow->out_nbytes, 0 };
    size_t result = ZSTD_decompressStream(state, &out, &in);
    move_on(flow, flow->in + in.pos, flow->out + out.pos);
    *inside = result != 0;
    return ZSTD_isError(result) ? CORRUPT : UNPACKED;
}

static void stop_zstd(void *state)
{
    ZSTD_freeDStream(state);
}

const struct unpacker unpack_zstd = { .truncated = "truncated zstd data",
                                      .corrupt = "corrupt zstd data",
                                      .start = start_zstd,
                                      .step = step_zstd,
                                      .stop = stop_zstd };

/* ---- xz -------------------------------------------------------------------------------- */

static void *start_xz(void)
{
    return calloc(1, sizeof(lzma_stream)); /* as LZMA_STREAM_INIT has it */
}

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
    free(state);
}

const struct unpacker unpack_xz = { .truncated = "truncated xz data",
                                    .corrupt = "corrupt xz data",
                                    .pads = true,
                                    .start = start_xz,
                                    .step = step_xz,
                                    .stop = stop_xz };

/* ---- bzip2 ----------------------------------------------------------------------------- */

static void *start_bzip2(void)
{
    return calloc(1, sizeof(bz_stream));
}

static enum unpacked step_bzip2(void *state, struct flow *flow, bool *inside)
{
    bz_stream *bz = state;
    if (!*inside) {
        BZ2_bzDecompressEnd(bz); /* the first time it is of nothing, and does nothing */
        if (BZ2_bzDecompressInit(bz, 0, 0) != BZ_OK)
            return NO_MEMORY;
    }
    bz->next_in = (char *)flow->in; /* is not written to */
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
    free(state);
}

const struct unpacker unpack_bzip2 = { .truncated = "truncated bzip2 data",
                                       .corrupt = "corrupt bzip2 data",
                                       .start = start_bzip2,
                                       .step = step_bzip2,
                                       .stop = stop_bzip2 };
