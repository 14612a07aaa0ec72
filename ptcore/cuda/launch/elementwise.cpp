// The elementwise entry of the backend: operands as one walk, the kernel that fits, numbers by
// value.
#include <atomic>
#include <cstring>

#include "driver.hpp"
#include "backend.hpp"
#include "elementwise_args.h"
#include "walk.hpp"

namespace pt_cuda {
namespace {

enum { THREADS = 256, PER_THREAD = 4, PACKS_PER_THREAD = 2 };

// An op's kernels; the program's name carries the op: "elementwise:add".
struct Kernels {
    char program[80], casting[80];
    Kernel dense, packed, strided, cast;
};

// The kernels by op number. An entry is written once and never freed, so that a launch reads it
// without a lock.
std::atomic<const Kernels *> *known;

const Kernels &add_kernels(int op, const char *name) {
    Kernels *k = new Kernels;
    std::snprintf(k->program, sizeof(k->program), "elementwise:%s", name);
    std::snprintf(k->casting, sizeof(k->casting), "elementwise_cast:%s", name);
    k->dense = {k->program, "elementwise_dense"};
    k->packed = {k->program, "elementwise_packed"};
    k->strided = {k->program, "elementwise_strided"};
    k->cast = {k->casting, "elementwise_cast"};
    const Kernels *first = nullptr;
    if (known[op].compare_exchange_strong(first, k, std::memory_order_release,
                                          std::memory_order_acquire))
        return *k;
    delete k;    // another thread was first: loaded kernels are found by its addresses
    return *first;
}

const Kernels &kernels_of(int op, const char *name) {
    const Kernels *k = known[op].load(std::memory_order_acquire);
    return k ? *k : add_kernels(op, name);
}

// Converts one host element to the op-math type of the compute dtype; with `rounded`, by way of the
// compute dtype.
int value_of(const pt_view &host, int compute, bool rounded, unsigned char *value) {
    pt_view src = host, dst = host;
    src.ndim = dst.ndim = 0;
    src.numel = dst.numel = 1;
    src.contiguous = dst.contiguous = 1;
    dst.data = reinterpret_cast<char *>(value);
    dst.dtype = (uint8_t)compute;
    if (compute != PT_FLOAT16 && compute != PT_BFLOAT16) return driver.host_copy(&dst, &src);
    uint16_t half;
    pt_view narrow = dst;
    narrow.data = reinterpret_cast<char *>(&half);
    dst.dtype = PT_FLOAT32;
    const int status = rounded ? driver.host_copy(&narrow, &src) : (int)PT_OK;
    return status ? status : driver.host_copy(&dst, rounded ? &narrow : &src);
}

}  // namespace

void hold_elementwise(int n) {
    if (!known) known = new std::atomic<const Kernels *>[n]();
}

int elementwise(int op, const char *name, int compute, int loop_out, const pt_view *out,
                const pt_view *in, int nin, const void *params) {
    last_error[0] = 0;
    if (out->numel == 0) return PT_OK;
    pt_call c = {};
    c.nout = 1;
    c.out = const_cast<pt_view *>(out);
    c.stream = driver.stream(out->device_index);
    ElementwiseArgs a = {};
    const pt_view *views[PT_WALK_OPERANDS] = {out};
    bool same = out->dtype == loop_out;
    std::memcpy(a.params, params, sizeof(a.params));
    a.data[0] = out->data;
    a.dtypes[0] = out->dtype;
    for (int k = 0; k < nin; k++) {
        views[k + 1] = &in[k];
        a.dtypes[k + 1] = in[k].dtype;
        bool one = true;
        for (int d = 0; d < in[k].ndim; d++)
            one = one && (in[k].strides[d] == 0 || in[k].sizes[d] == 1);
        if (one) a.single |= 2u << k;
        if (in[k].device == 0) {
            int status = value_of(in[k], compute, loop_out == PT_BOOL,
                                  a.values[k + 1]);    // comparisons use values of the dtype
            if (status) return status;
            a.dtypes[k + 1] = (unsigned char)compute;
            continue;
        }
        a.data[k + 1] = in[k].data;
        same = same && in[k].dtype == compute;
    }
    Walk w = walk_of(views, nin + 1);
    bool dense = same && w.ndim <= 1;
    a.aligned = 1;
    int items[PT_WALK_OPERANDS];
    for (int k = 0; k <= nin; k++) {
        items[k] = item_size(views[k]->dtype);
        if (a.single >> k & 1) continue;
        dense = dense && (w.ndim == 0 || w.strides[k][0] == item_size(views[k]->dtype));
        a.aligned = a.aligned && (uintptr_t)views[k]->data % 16 == 0;
    }
    const Kernels &kernels = kernels_of(op, name);
    int status;
    if (dense) {
        a.n = w.count();
        const int item = item_size(compute);
        const int64_t each = (int64_t)THREADS * (item == 1 ? 1 : PER_THREAD) * (16 / item);
        const Grid grid{(unsigned)ceil_div(a.n, each), 1, 1};
        status = launch(&c, kernels.dense, types(compute), grid, THREADS, a);
    } else {
        status = by_parts(w, nullptr, [&](const Walk &part, const int64_t *at) {
            ElementwiseArgs b = a;
            b.n = part.count();
            for (int k = 0; k <= nin; k++)
                if (b.data[k]) b.data[k] += at[k];
            const int width = 16 / item_size(compute);
            if (same && width > 1 && has_packs(part, width, b.data, items)) {
                const Walk packs = by_packs(part, width);
                b.n = packs.count();
                pack(packs, b.walk);
                const int64_t each = THREADS * PACKS_PER_THREAD;
                return launch(&c, kernels.packed, types(compute),
                              Grid{(unsigned)ceil_div(b.n, each), 1, 1}, THREADS, b);
            }
            pack(part, b.walk);
            const Grid grid{(unsigned)((b.n + THREADS * PER_THREAD - 1) / (THREADS * PER_THREAD)),
                            1, 1};
            return launch(&c, same ? kernels.strided : kernels.cast, types(compute), grid, THREADS,
                          b);
        });
    }
    if (status) std::memcpy(last_error, c.error, sizeof(c.error));
    return status;
}

}  // namespace pt_cuda
