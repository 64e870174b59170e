/* peer_rocksdb.cc - measures the Bloom and Ribbon filters of RocksDB, as it builds them for a
 * table.
 *
 * The public header of RocksDB makes a policy, and a policy makes a builder and a reader.  The
 * classes of these two are in a header that is not installed since 7.0, so they are declared
 * here as 7.x has them.  Only the order of their virtual functions is used.  It may change with
 * any version, so bench/CMakeLists.txt takes no other one.
 *
 * A filter is built when all keys are in.  So the time to add is that of both steps: collecting
 * the keys and building. */
#include <rocksdb/filter_policy.h>
#include <rocksdb/slice.h>
#include <rocksdb/table.h>

#include <memory>

#include "bench.h"

namespace rocksdb
{

class FilterBitsBuilder
{
  public:
    virtual ~FilterBitsBuilder() = default;
    virtual void AddKey(const Slice &key) = 0;
    virtual size_t EstimateEntriesAdded() = 0;
    virtual Slice Finish(std::unique_ptr<const char[]> *buffer) = 0;
    virtual Slice Finish(std::unique_ptr<const char[]> *buffer, Status *status) = 0;
    virtual Status MaybePostVerify(const Slice &contents) = 0;
    virtual size_t ApproximateNumEntries(size_t nbytes) = 0;
    /* The builders of the library itself have these as well. */
    virtual size_t CalculateSpace(size_t nkeys) = 0;
    virtual double EstimatedFpRate(size_t nkeys, size_t nbytes) = 0;
};

class FilterBitsReader
{
  public:
    virtual ~FilterBitsReader() = default;
    virtual bool MayMatch(const Slice &key) = 0;
    virtual void MayMatch(int nkeys, Slice **keys, bool *may_match) = 0;
};

} // namespace rocksdb

namespace
{

/* The batches of RocksDB's own MultiGet have this size, and its reader takes no more keys. */
constexpr size_t kBatch = 32;

/* A filter that is being built (no reader yet), or one that is built (buffer, contents and
 * reader).  'contents' points into 'buffer', and the reader reads both. */
struct Filter {
    bool ribbon;
    double bits_per_key;
    size_t capacity;
    std::unique_ptr<const rocksdb::FilterPolicy> policy;
    std::unique_ptr<rocksdb::FilterBitsBuilder> builder;
    std::unique_ptr<const char[]> buffer;
    rocksdb::Slice contents;
    std::unique_ptr<rocksdb::FilterBitsReader> reader;
};

rocksdb::Slice slice_at(const perhaps_keys *keys, size_t i)
{
    auto bytes = static_cast<const char *>(keys->packed) + i * keys->key_nbytes;
    return rocksdb::Slice(bytes, keys->key_nbytes);
}

/* With -1 the Ribbon policy takes Ribbon filters at all levels. */
void make_policy(Filter *filter)
{
    filter->policy.reset(filter->ribbon
                             ? rocksdb::NewRibbonFilterPolicy(filter->bits_per_key, -1)
                             : rocksdb::NewBloomFilterPolicy(filter->bits_per_key));
}

/* Makes a builder without keys, for the bottommost level, where RocksDB has most of its keys. */
void make_builder(Filter *filter)
{
    rocksdb::BlockBasedTableOptions options;
    rocksdb::FilterBuildingContext context(options);
    context.is_bottommost = true;
    filter->builder.reset(filter->policy->GetBuilderWithContext(context));
}

/* RocksDB wants bits a key, not a rate.  This finds the fewest bits that keep the rate by
 * RocksDB's own estimate: halving the range 20 times is exact to a ten-thousandth of a bit. */
void choose_bits(Filter *filter, double fpr)
{
    double low = 1, high = 64;
    for (int i = 0; i < 20; i++) {
        filter->bits_per_key = (low + high) / 2;
        make_policy(filter);
        make_builder(filter);
        size_t nbytes = filter->builder->CalculateSpace(filter->capacity);
        bool enough = filter->builder->EstimatedFpRate(filter->capacity, nbytes) <= fpr;
        (enough ? high : low) = filter->bits_per_key;
    }
    filter->bits_per_key = high;
}

const char *create(const contender *self, const task *task, void **made)
{
    auto filter = new Filter{};
    filter->ribbon = self->name[8] == 'r';
    filter->capacity = static_cast<size_t>(task->capacity);
    choose_bits(filter, task->fpr);
    make_policy(filter);
    make_builder(filter);
    *made = filter;
    return nullptr;
}

void destroy(void *filter)
{
    delete static_cast<Filter *>(filter);
}

void clear(void *opaque)
{
    auto filter = static_cast<Filter *>(opaque);
    filter->reader.reset();
    filter->buffer.reset();
    filter->contents = rocksdb::Slice();
    make_builder(filter);
}

/* Before it is built, a filter has only an estimate of its size. */
void tell(const void *opaque, facts *facts)
{
    auto filter = static_cast<const Filter *>(opaque);
    facts->nbytes = filter->contents.size();
    if (!facts->nbytes)
        facts->nbytes = filter->builder->CalculateSpace(filter->capacity);
}

size_t add(void *opaque, const perhaps_keys *keys)
{
    auto filter = static_cast<Filter *>(opaque);
    for (size_t i = 0; i < keys->count; i++)
        filter->builder->AddKey(slice_at(keys, i));
    return keys->count;
}

bool finish(void *opaque)
{
    auto filter = static_cast<Filter *>(opaque);
    filter->contents = filter->builder->Finish(&filter->buffer);
    filter->reader.reset(filter->policy->GetFilterBitsReader(filter->contents));
    return filter->contents.size() > 0 && filter->reader;
}

size_t ask(void *opaque, const perhaps_keys *keys)
{
    auto filter = static_cast<Filter *>(opaque);
    size_t found = 0;
    for (size_t i = 0; i < keys->count; i++)
        found += filter->reader->MayMatch(slice_at(keys, i));
    return found;
}

size_t ask_batched(void *opaque, const perhaps_keys *keys)
{
    auto filter = static_cast<Filter *>(opaque);
    rocksdb::Slice slices[kBatch], *each[kBatch];
    bool answers[kBatch];
    size_t found = 0;
    for (size_t at = 0; at < keys->count; at += kBatch) {
        size_t n = keys->count - at < kBatch ? keys->count - at : kBatch;
        for (size_t i = 0; i < n; i++) {
            slices[i] = slice_at(keys, at + i);
            each[i] = &slices[i];
        }
        filter->reader->MayMatch(static_cast<int>(n), each, answers);
        for (size_t i = 0; i < n; i++)
            found += answers[i];
    }
    return found;
}

bool reopened(const void *opaque, const perhaps_keys *key)
{
    auto filter = static_cast<const Filter *>(opaque);
    std::unique_ptr<rocksdb::FilterBitsReader> reader(
        filter->policy->GetFilterBitsReader(filter->contents));
    return reader->MayMatch(slice_at(key, 0));
}

contender contender_named(const char *name)
{
    contender made = {};
    made.name = name;
    made.is_peer = true;
    made.is_heavy = true;
    made.can_threads = true;
    made.create = create;
    made.destroy = destroy;
    made.clear = clear;
    made.tell = tell;
    made.add[SINGLE] = add;
    made.ask[SINGLE] = ask;
    made.ask[BATCHED] = ask_batched;
    made.finish = finish;
    made.reopened = reopened;
    return made;
}

} // namespace

size_t peer_rocksdb(contender *list)
{
    list[0] = contender_named("rocksdb-bloom");
    list[1] = contender_named("rocksdb-ribbon");
    return 2;
}
