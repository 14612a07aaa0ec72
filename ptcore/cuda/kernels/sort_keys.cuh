// Converts elements to whole numbers of the same order (keys), and back: floats by their bits with
// the sign folded in, -0 equal to 0, every NaN equal and greatest; complemented for descending
// order. A key has as many bits as an element.
#pragma once
#include "divide.cuh"
#include "sort_args.h"

namespace {

typedef PT_T T;

template <class B> PT_DEVICE B folded(B bits) {
    const B sign = (B)((B)1 << (8 * sizeof(B) - 1));
    return bits & sign ? (B)~bits : (B)(bits | sign);
}
PT_DEVICE uint64_t key_of(float x) {
    return x != x ? ~(uint32_t)0 : folded(pt::to_bits(x == 0 ? 0.f : x));
}
PT_DEVICE uint64_t key_of(double x) {
    return x != x ? ~(uint64_t)0 : folded(pt::to_bits(x == 0 ? 0. : x));
}
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
    if (a.inner.by == 1) return line * length + j;
    const int64_t column = take_rest(line, a.inner);
    return (line * length + j) * a.inner.by + column;
}

PT_DEVICE uint64_t ordered(const SortArgs &a, T x) {
    return a.descending ? ~key_of(x) & ~(uint64_t)0 >> (64 - 8 * sizeof(T)) : key_of(x);
}

template <class B> PT_DEVICE B unfolded(B key) {
    const B sign = (B)((B)1 << (8 * sizeof(B) - 1));
    return key & sign ? (B)(key ^ sign) : (B)~key;
}
template <class X> PT_DEVICE bool of_key(X *x, uint64_t key) {
    const uint64_t sign = (X)-1 < (X)0 ? (uint64_t)1 << (8 * sizeof(X) - 1) : 0;
    *x = (X)(key ^ sign);
    return true;
}
PT_DEVICE bool of_key(pt::boolean *x, uint64_t key) {
    return of_key(reinterpret_cast<uint8_t *>(x), key);
}
template <class X, class B> PT_DEVICE bool of_folded(X *x, B key) {
    const B bits = unfolded(key);
    memcpy((void *)x, (const void *)&bits, sizeof(B));
    return bits && key != (B)~(B)0;
}
PT_DEVICE bool of_key(half *x, uint64_t key) { return of_folded(x, (uint16_t)key); }
PT_DEVICE bool of_key(bfloat16 *x, uint64_t key) { return of_folded(x, (uint16_t)key); }
PT_DEVICE bool of_key(float *x, uint64_t key) { return of_folded(x, (uint32_t)key); }
PT_DEVICE bool of_key(double *x, uint64_t key) { return of_folded(x, key); }

// Writes the element of a key. False if several elements have the key (zeros, NaN): read it then.
PT_DEVICE bool element_of(const SortArgs &a, raw<T>::type *x, uint64_t key) {
    return of_key(x, a.descending ? ~key & ~(uint64_t)0 >> (64 - 8 * sizeof(T)) : key);
}

PT_DEVICE void put_entry(const SortArgs &a, int64_t i, uint64_t key, int64_t position) {
    if (a.brief) static_cast<uint64_t *>(a.entries)[i] = key << 32 | (uint64_t)position;
    else static_cast<SortEntry *>(a.entries)[i] = SortEntry{key, position};
}

}  // namespace
