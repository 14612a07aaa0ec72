// Atomic changes of elements in memory. Additions of every dtype but halves use the hardware's
// atomic instruction where there is one; the others exchange the whole word that holds the
// element.
#pragma once
#include "base.cuh"

namespace {

// Replaces an element of 1 or 2 bytes by change(element).
template <class T, class F> PT_DEVICE void atomic_small(T *p, F change) {
    const uint64_t address = reinterpret_cast<uint64_t>(p);
    unsigned *word = reinterpret_cast<unsigned *>(address & ~(uint64_t)3);
    const unsigned shift = 8 * (unsigned)(address & 3), mask = (sizeof(T) == 1 ? 0xffu : 0xffffu)
                                                               << shift;
    unsigned seen = *const_cast<volatile unsigned *>(word), assumed;
    do {
        assumed = seen;
        union { uint16_t bits; T value; } in = {(uint16_t)((assumed & mask) >> shift)}, out = {0};
        out.value = change(in.value);
        if (out.bits == in.bits) return;
        seen = atomicCAS(word, assumed, (assumed & ~mask) | ((unsigned)out.bits << shift & mask));
    } while (seen != assumed);
}

// Replaces an element of 4 or 8 bytes, which is a whole word, by change(element).
template <class W, class T, class F> PT_DEVICE void atomic_word(T *p, F change) {
    W *word = reinterpret_cast<W *>(p), seen = *const_cast<volatile W *>(word), assumed, wanted;
    do {
        assumed = seen;
        T value;
        memcpy((void *)&value, (const void *)&assumed, sizeof(T));
        value = change(value);
        memcpy((void *)&wanted, (const void *)&value, sizeof(T));
        if (wanted == assumed) return;
        seen = atomicCAS(word, assumed, wanted);
    } while (seen != assumed);
}
template <int BYTES> struct atomic_by {
    template <class T, class F> static PT_DEVICE_MEMBER void change(T *p, F f) {
        atomic_small(p, f);
    }
};
template <> struct atomic_by<4> {
    template <class T, class F> static PT_DEVICE_MEMBER void change(T *p, F f) {
        atomic_word<unsigned>(p, f);
    }
};
template <> struct atomic_by<8> {
    typedef unsigned long long word;
    template <class T, class F> static PT_DEVICE_MEMBER void change(T *p, F f) {
        atomic_word<word>(p, f);
    }
};

PT_DEVICE void atomic_add(float *p, float x) { atomicAdd(p, x); }
PT_DEVICE void atomic_add(double *p, double x) { atomicAdd(p, x); }
PT_DEVICE void atomic_add(int32_t *p, int32_t x) {
    atomicAdd(reinterpret_cast<unsigned *>(p), (unsigned)x);
}
PT_DEVICE void atomic_add(uint32_t *p, uint32_t x) {
    atomicAdd(reinterpret_cast<unsigned *>(p), x);
}
PT_DEVICE void atomic_add(int64_t *p, int64_t x) {
    atomicAdd(reinterpret_cast<unsigned long long *>(p), (unsigned long long)x);
}
PT_DEVICE void atomic_add(uint64_t *p, uint64_t x) {
    atomicAdd(reinterpret_cast<unsigned long long *>(p), (unsigned long long)x);
}
PT_DEVICE void atomic_add(complex64 *p, complex64 x) {
    atomicAdd(&p->re, x.re), atomicAdd(&p->im, x.im);
}
PT_DEVICE void atomic_add(complex128 *p, complex128 x) {
    atomicAdd(&p->re, x.re), atomicAdd(&p->im, x.im);
}

struct add_bytes {
    uint8_t x;
    PT_DEVICE_MEMBER uint8_t operator()(uint8_t y) const { return (uint8_t)(x + y); }
};
struct add_words {
    uint16_t x;
    PT_DEVICE_MEMBER uint16_t operator()(uint16_t y) const { return (uint16_t)(x + y); }
};
struct or_bytes {
    uint8_t x;
    PT_DEVICE_MEMBER uint8_t operator()(uint8_t y) const { return (uint8_t)(x | (y != 0)); }
};
PT_DEVICE void atomic_add(uint8_t *p, uint8_t x) { atomic_small(p, add_bytes{x}); }
PT_DEVICE void atomic_add(int8_t *p, int8_t x) {
    atomic_small(reinterpret_cast<uint8_t *>(p), add_bytes{(uint8_t)x});
}
PT_DEVICE void atomic_add(uint16_t *p, uint16_t x) { atomic_small(p, add_words{x}); }
PT_DEVICE void atomic_add(int16_t *p, int16_t x) {
    atomic_small(reinterpret_cast<uint16_t *>(p), add_words{(uint16_t)x});
}
PT_DEVICE void atomic_add(bool *p, bool x) {
    atomic_small(reinterpret_cast<uint8_t *>(p), or_bytes{(uint8_t)x});
}

}  // namespace
