/* Vectors of the width the file is compiled for: simd<T> gives the register type, its lane count
 * and the few operations that hand-blocked kernels (reductions, GEMM) need.
 *
 * With GNU C the register is a vector extension type; elsewhere (or with PT_PORTABLE_SIMD) it is a
 * small array, so that the same kernels build with any C++17 compiler. Lane counts never show in
 * results: kernels that use this header fix their own number of virtual lanes.
 */
#ifndef PTCORE_SIMD_H
#define PTCORE_SIMD_H
#include <string.h>
#include "ptcore/config.h"

#if defined(__AVX512F__)
#define PT_VECTOR_BYTES 64
#elif defined(__AVX2__)
#define PT_VECTOR_BYTES 32
#else
#define PT_VECTOR_BYTES 16
#endif

namespace {

#if defined(__GNUC__) && !defined(PT_PORTABLE_SIMD)
template <class T>
struct vector_of {
    typedef T type __attribute__((vector_size(PT_VECTOR_BYTES)));
};
#else
template <class T>
struct portable_vector {
    T lane[PT_VECTOR_BYTES / sizeof(T)];
    friend portable_vector operator+(portable_vector a, portable_vector b) {
        for (unsigned i = 0; i < PT_VECTOR_BYTES / sizeof(T); ++i) a.lane[i] += b.lane[i];
        return a;
    }
    friend portable_vector operator-(portable_vector a, portable_vector b) {
        for (unsigned i = 0; i < PT_VECTOR_BYTES / sizeof(T); ++i) a.lane[i] -= b.lane[i];
        return a;
    }
    friend portable_vector operator*(portable_vector a, portable_vector b) {
        for (unsigned i = 0; i < PT_VECTOR_BYTES / sizeof(T); ++i) a.lane[i] *= b.lane[i];
        return a;
    }
    portable_vector &operator+=(portable_vector b) { return *this = *this + b; }
    portable_vector &operator*=(portable_vector b) { return *this = *this * b; }
};
template <class T>
struct vector_of {
    typedef portable_vector<T> type;
};
#endif

template <class T>
struct simd {
    typedef typename vector_of<T>::type vector;
    static constexpr int width = PT_VECTOR_BYTES / int(sizeof(T));

    static inline vector load(const T *p) {
        vector v;
        memcpy(&v, p, sizeof v);
        return v;
    }
    static inline void store(T *p, vector v) { memcpy(p, &v, sizeof v); }
    /* the lanes added in a fixed tree: l with l + width/2, and so on */
    static inline T sum(vector v) {
        T lane[width];
        store(lane, v);
        for (int half = width / 2; half > 0; half /= 2)
            for (int l = 0; l < half; ++l) lane[l] += lane[l + half];
        return lane[0];
    }
    static inline vector fill(T x) {
#if defined(__GNUC__) && !defined(PT_PORTABLE_SIMD)
        return x - vector{};        /* -0.0 and NaN survive: x - (+0) is x */
#else
        vector v;
        for (int i = 0; i < width; ++i) v.lane[i] = x;
        return v;
#endif
    }
};

/* max and min that keep the first NaN; for vectors and scalars alike */
template <class V>
inline V select_max(V a, V b) {
    return a != a ? a : b <= a ? a : b;
}
template <class V>
inline V select_min(V a, V b) {
    return a != a ? a : b >= a ? a : b;
}
#if !defined(__GNUC__) || defined(PT_PORTABLE_SIMD)
template <class T>
inline portable_vector<T> select_max(portable_vector<T> a, portable_vector<T> b) {
    for (unsigned i = 0; i < PT_VECTOR_BYTES / sizeof(T); ++i) a.lane[i] = select_max(a.lane[i], b.lane[i]);
    return a;
}
template <class T>
inline portable_vector<T> select_min(portable_vector<T> a, portable_vector<T> b) {
    for (unsigned i = 0; i < PT_VECTOR_BYTES / sizeof(T); ++i) a.lane[i] = select_min(a.lane[i], b.lane[i]);
    return a;
}
#endif

} // namespace
#endif
