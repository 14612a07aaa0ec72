// Elements to entries whose order is the wanted one, and back: floats by their bits with the sign folded in, -0 equal to 0,
// every NaN equal and greatest; complemented for descending order. A key has as many bits as an element.
#include "base.cuh"
#include "sort_args.h"

namespace {

typedef PT_T T;

template <class B> PT_DEVICE B folded(B bits) {
    const B sign = (B)((B)1 << (8 * sizeof(B) - 1));
    return bits & sign ? (B)~bits : (B)(bits | sign);
}
PT_DEVICE uint64_t key_of(float x) { return x != x ? ~(uint32_t)0 : folded(pt::to_bits(x == 0 ? 0.f : x)); }
PT_DEVICE uint64_t key_of(double x) { return x != x ? ~(uint64_t)0 : folded(pt::to_bits(x == 0 ? 0. : x)); }
template <class H> PT_DEVICE uint64_t key_of_half(H x) {
    const float value = up(x);
    return value != value ? (uint16_t)~0 : folded((uint16_t)(value == 0 ? 0 : x.bits));
}
PT_DEVICE uint64_t key_of(half x) { return key_of_half(x); }
PT_DEVICE uint64_t key_of(bfloat16 x) { return key_of_half(x); }
PT_DEVICE uint64_t key_of(bool x) { return x; }
template <class I> PT_DEVICE uint64_t key_of(I x) {
    const uint64_t sign = (I)-1 < (I)0 ? (uint64_t)1 << (8 * sizeof(I) - 1) : 0;
    return ((uint64_t)x ^ sign) & ~(uint64_t)0 >> (64 - 8 * sizeof(I));
}

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
            if (a.descending) key = ~key & ~(uint64_t)0 >> (64 - 8 * sizeof(T));
        }
        // padding comes behind all by its position
        if (a.brief) static_cast<uint64_t *>(a.entries)[i] = key << 32 | (uint64_t)j;
        else static_cast<SortEntry *>(a.entries)[i] = SortEntry{key, j};
    }
}

PT_DEVICE void close(const SortArgs &a) {
    const int64_t n = a.lines * a.kept;
    for (int64_t i = thread_index(); i < n; i += thread_count()) {
        const int64_t line = i / a.kept, j = i % a.kept, to = place(a, line, j, a.kept);
        const int64_t at = line * a.size + j;
        const int64_t position = a.brief ? (int64_t)(static_cast<const uint64_t *>(a.entries)[at] & 0xffffffffu)
                                         : static_cast<const SortEntry *>(a.entries)[at].position;
        reinterpret_cast<raw<T>::type *>(a.values)[to] =
            reinterpret_cast<const raw<T>::type *>(a.in)[place(a, line, position, a.length)];
        reinterpret_cast<int64_t *>(a.positions)[to] = position;
    }
}

}  // namespace

PT_KERNEL(sort_open, SortArgs, a, 256) { open(a); }
PT_KERNEL(sort_close, SortArgs, a, 256) { close(a); }
