// Neighbouring elements that are loaded and stored by one instruction.
#pragma once
#include "base.cuh"

namespace {

// The number of elements that one load of 16 bytes brings.
template <class T> struct vector_of { static constexpr int size = 16 / sizeof(T); };

template <int BYTES> struct word_of { typedef uint8_t type; };
template <> struct word_of<2> { typedef uint16_t type; };
template <> struct word_of<4> { typedef uint32_t type; };
template <> struct word_of<8> { typedef uint2 type; };
template <> struct word_of<16> { typedef uint4 type; };

template <class T, int V> struct Elements { T v[V]; };

// A device traps at a misaligned wide access; the host's processor does not.
#if defined(__CUDACC_RTC__)
#  define PT_ALIGNED(p, n)
#else
#  define PT_ALIGNED(p, n) assert(reinterpret_cast<uintptr_t>(p) % (n) == 0)
#endif

// V neighbours of at most 16 bytes, at an address that is a multiple of their size; more bytes are
// moved word by word.
template <class T, int V> struct packs {
    static constexpr int BYTES = sizeof(T) * V < 16 ? sizeof(T) * V : 16,
                         WORDS = sizeof(T) * V / BYTES;
    typedef typename word_of<BYTES>::type word;
    static PT_DEVICE_MEMBER Elements<T, V> load(const T *p) {
        word w[WORDS];
        PT_ALIGNED(p, BYTES);
        for (int i = 0; i < WORDS; i++) w[i] = reinterpret_cast<const word *>(p)[i];
        Elements<T, V> x;
        memcpy((void *)&x, (const void *)w, sizeof(w));
        return x;
    }
    static PT_DEVICE_MEMBER void store(T *p, const Elements<T, V> &x) {
        word w[WORDS];
        PT_ALIGNED(p, BYTES);
        memcpy((void *)w, (const void *)&x, sizeof(w));
        for (int i = 0; i < WORDS; i++) reinterpret_cast<word *>(p)[i] = w[i];
    }
};
template <int V> struct packs<bool, V> {        // bool memory may hold any byte
    static PT_DEVICE_MEMBER Elements<bool, V> load(const bool *p) {
        const Elements<uint8_t, V> bytes =
            packs<uint8_t, V>::load(reinterpret_cast<const uint8_t *>(p));
        Elements<bool, V> x;
        for (int v = 0; v < V; v++) x.v[v] = bytes.v[v] != 0;
        return x;
    }
};
template <int V, class T> PT_DEVICE Elements<T, V> load_pack(const T *p) {
    return packs<T, V>::load(p);
}
template <int V, class T> PT_DEVICE void store_pack(T *p, const Elements<T, V> &x) {
    packs<T, V>::store(p, x);
}

}  // namespace
