// cplusplus_test.cpp - proves that perhaps.h and perhaps_fast.h compile as C++11 and that the
// functions link from there.  It fails to build when the header takes something that is C only, and fails with the
// number of the step when a call returns something wrong.
#include "perhaps.h"
#include "perhaps_fast.h"
#include "perhaps_plan.h"

#include <cstdio>
#include <memory>
#include <string>
#include <vector>

// Lets a std::unique_ptr own a filter.
struct Free {
    void operator()(perhaps_filter *filter) const
    {
        perhaps_free(filter);
    }
};

static int run()
{
    perhaps_options options = {};
    options.capacity = 1000;
    options.fpr = 0.001;
    options.needs = PERHAPS_CAN_REMOVE | PERHAPS_CAN_COUNT;
    perhaps_filter *made = nullptr;
    if (int error = perhaps_create(&options, &made)) {
        std::printf("%s\n", perhaps_strerror(error));
        return 1;
    }
    std::unique_ptr<perhaps_filter, Free> filter(made);

    struct perhaps_plan plan; // with 'struct', since a function has the same name
    if (perhaps_plan_for(&options, &plan) || plan.fpr_predicted > options.fpr)
        return 5;

    std::vector<std::string> names;
    std::vector<perhaps_key> each;
    for (int i = 0; i < 1000; i++)
        names.push_back("name " + std::to_string(i));
    for (const std::string &name : names)
        each.push_back({ name.data(), name.size() });
    perhaps_keys keys = perhaps_keys_each(each.data(), each.size());
    size_t done = 0;
    if (perhaps_add_many(filter.get(), &keys, &done) != PERHAPS_OK || done != names.size())
        return 2;
    if (perhaps_contains_many(filter.get(), &keys, nullptr) != names.size())
        return 3;
    perhaps_view view = perhaps_view_of(filter.get());
    if (perhaps_view_add_integer(&view, 5) || !perhaps_view_contains_integer(&view, 5))
        return 6;
    return perhaps_remove(filter.get(), names[0].data(), names[0].size()) == PERHAPS_OK ? 0 : 4;
}

// Asks cuckoo filters of several widths by views and by calls: here without AVX2.
static int ask_views()
{
    for (double fpr : { 0.1, 0.01, 2e-3, 1e-4, 1e-7 }) {
        perhaps_options options = {};
        options.kind = "cuckoo";
        options.capacity = 1000;
        options.fpr = fpr;
        perhaps_filter *made = nullptr;
        if (perhaps_create(&options, &made))
            return 7;
        std::unique_ptr<perhaps_filter, Free> filter(made);
        for (uint64_t key = 0; key < 1000; key++)
            if (perhaps_add(filter.get(), &key, sizeof key))
                return 8;
        perhaps_cuckoo_view view = perhaps_cuckoo_view_of(filter.get());
        for (uint64_t key = 0; key < 20000; key++)
            if (perhaps_cuckoo_view_contains_integer(&view, key) !=
                perhaps_contains(filter.get(), &key, sizeof key))
                return 9;
    }
    return 0;
}

int main()
{
    int result = run();
    if (!result)
        result = ask_views();
    if (result)
        std::printf("not so: step %d\n", result);
    return result;
}
