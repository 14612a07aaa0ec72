// Elements to entries whose order is the wanted one, and back: floats by their bits with the sign folded in, -0 equal to 0,
// every NaN equal and greatest; complemented for descending order. The same keys as the CPU's.
#include "base.cuh"
#include "sort_args.h"

namespace {

typedef PT_T T;

PT_DEVICE uint64_t key_of(float x) {
    if (x != x) return ~(uint32_t)0;
    const uint32_t bits = pt::to_bits(x == 0 ? 0.f : x);
    return bits & 0x80000000u ? ~bits : bits | 0x80000000u;
}
PT_DEVICE uint64_t key_of(double x) {
    if (x != x) return ~(uint64_t)0;
    const uint64_t bits = pt::to_bits(x == 0 ? 0. : x), sign = (uint64_t)1 << 63;
    return bits & sign ? ~bits : bits | sign;
}
PT_DEVICE uint64_t key_of(half x) { return key_of(pt::to_float(x)); }
PT_DEVICE uint64_t key_of(bfloat16 x) { return key_of(pt::to_float(x)); }
PT_DEVICE uint64_t key_of(uint64_t x) { return x; }
PT_DEVICE uint64_t key_of(bool x) { return x; }
template <class I> PT_DEVICE uint64_t key_of(I x) { return (uint64_t)(int64_t)x ^ (uint64_t)1 << 63; }

PT_DEVICE int64_t place(const SortArgs &a, int64_t line, int64_t j, int64_t length) {
    return (line / a.inner * length + j) * a.inner + line % a.inner;
}

PT_DEVICE void open(const SortArgs &a) {
    const int64_t n = a.lines * a.size;
    for (int64_t i = thread_index(); i < n; i += thread_count()) {
        const int64_t line = i / a.size, j = i % a.size;
        uint64_t key = ~(uint64_t)0;
        if (j < a.length) {
            key = key_of(load(reinterpret_cast<const T *>(a.in), place(a, line, j, a.length)));
            if (a.descending) key = ~key;
        }
        a.entries[i] = SortEntry{key, j};               // padding comes behind all by its position
    }
}

PT_DEVICE void close(const SortArgs &a) {
    const int64_t n = a.lines * a.kept;
    for (int64_t i = thread_index(); i < n; i += thread_count()) {
        const int64_t line = i / a.kept, j = i % a.kept, to = place(a, line, j, a.kept);
        const int64_t position = a.entries[line * a.size + j].position;
        reinterpret_cast<raw<T>::type *>(a.values)[to] =
            reinterpret_cast<const raw<T>::type *>(a.in)[place(a, line, position, a.length)];
        reinterpret_cast<int64_t *>(a.positions)[to] = position;
    }
}

}  // namespace

PT_KERNEL(sort_open, SortArgs, a, 256) { open(a); }
PT_KERNEL(sort_close, SortArgs, a, 256) { close(a); }
