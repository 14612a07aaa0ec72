/* Vectors of the width the file is compiled for: simd<T> gives the register type, its lane count
 * and the few operations that hand-blocked kernels (reductions, GEMM) need.
 *
 * With GNU C the register is a vector extension type; elsewhere (or with
 * PT_PORTABLE_SIMD) it is a small array, so that the same kernels build with any C++17
 * compiler. Lane counts do not have to affect results: kernels that must agree between
 * ISA levels fix their own number of virtual lanes. */
#ifndef PTCORE_SIMD_H
#define PTCORE_SIMD_H
#include "config.h"

#include <utility>

#if defined(__AVX512F__)
#define PT_VECTOR_BYTES 64
#elif defined(__AVX2__)
#define PT_VECTOR_BYTES 32
#else
#define PT_VECTOR_BYTES 16
#endif

#if defined(__GNUC__) && !defined(PT_PORTABLE_SIMD)
#define PT_GNU_VECTORS 1
#else
#define PT_GNU_VECTORS 0
#endif
#if PT_GNU_VECTORS && (defined(__clang__) || __GNUC__ >= 12)
#define PT_SHUFFLE_VECTORS 1
#else
#define PT_SHUFFLE_VECTORS 0
#endif
#if PT_GNU_VECTORS && (defined(__AVX2__) || defined(__SSE2__))
#include <immintrin.h>
#endif

namespace {

#if PT_GNU_VECTORS
template <class T>
struct vector_of {
    typedef T type __attribute__((vector_size(PT_VECTOR_BYTES)));
};
#else
template <class T>
struct portable_vector {
    static constexpr int width = PT_VECTOR_BYTES / int(sizeof(T));
    T lane[width];
    template <class F>
    static portable_vector each(portable_vector a, portable_vector b, F f) {
        for (int i = 0; i < width; ++i) a.lane[i] = f(a.lane[i], b.lane[i]);
        return a;
    }
    friend portable_vector operator+(portable_vector a, portable_vector b) {
        return each(a, b, [](T x, T y) { return T(x + y); });
    }
    friend portable_vector operator-(portable_vector a, portable_vector b) {
        return each(a, b, [](T x, T y) { return T(x - y); });
    }
    friend portable_vector operator*(portable_vector a, portable_vector b) {
        return each(a, b, [](T x, T y) { return T(x * y); });
    }
    portable_vector &operator+=(portable_vector b) { return *this = *this + b; }
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
    static inline vector fill(T x) {
#if PT_GNU_VECTORS
        return x - vector{};        /* -0.0 and NaN survive: x - (+0) is x */
#else
        vector v;
        for (int i = 0; i < width; ++i) v.lane[i] = x;
        return v;
#endif
    }
    /* the first n < width lanes from memory, 0 in the others */
    static inline vector load_part(const T *p, int n) {
#if PT_GNU_VECTORS && defined(__AVX512F__)
        if constexpr (sizeof(T) == 4)
            return reinterpret<vector>(_mm512_maskz_loadu_epi32(__mmask16((1u << n) - 1), p));
        if constexpr (sizeof(T) == 8)
            return reinterpret<vector>(_mm512_maskz_loadu_epi64(__mmask8((1u << n) - 1), p));
#elif PT_GNU_VECTORS && defined(__AVX2__)
        if constexpr (sizeof(T) == 4)
            return reinterpret<vector>(_mm256_maskload_epi32(reinterpret_cast<const int *>(p),
                                                             first_lanes(n)));
        if constexpr (sizeof(T) == 8)
            return reinterpret<vector>(_mm256_maskload_epi64(reinterpret_cast<const long long *>(p),
                                                             first_lanes(2 * n)));
#endif
        T lane[width] = {};
        for (int l = 0; l < n; ++l) lane[l] = p[l];
        return load(lane);
    }
    /* the first n < width lanes to memory; no other memory is written */
    static inline void store_part(T *p, vector v, int n) {
#if PT_GNU_VECTORS && defined(__AVX512F__)
        if constexpr (sizeof(T) == 4)
            return _mm512_mask_storeu_epi32(p, __mmask16((1u << n) - 1), reinterpret<__m512i>(v));
        if constexpr (sizeof(T) == 8)
            return _mm512_mask_storeu_epi64(p, __mmask8((1u << n) - 1), reinterpret<__m512i>(v));
#elif PT_GNU_VECTORS && defined(__AVX2__)
        if constexpr (sizeof(T) == 4)
            return _mm256_maskstore_epi32(reinterpret_cast<int *>(p), first_lanes(n),
                                          reinterpret<__m256i>(v));
        if constexpr (sizeof(T) == 8)
            return _mm256_maskstore_epi64(reinterpret_cast<long long *>(p), first_lanes(2 * n),
                                          reinterpret<__m256i>(v));
#endif
        T lane[width];
        store(lane, v);
        for (int l = 0; l < n; ++l) p[l] = lane[l];
    }
    /* the first n < width lanes of v, the others of `rest` */
    static inline vector blend(vector v, vector rest, int n) {
#if PT_GNU_VECTORS && defined(__AVX512F__)
        if constexpr (sizeof(T) == 4)
            return reinterpret<vector>(_mm512_mask_mov_epi32(
                reinterpret<__m512i>(rest), __mmask16((1u << n) - 1), reinterpret<__m512i>(v)));
        if constexpr (sizeof(T) == 8)
            return reinterpret<vector>(_mm512_mask_mov_epi64(
                reinterpret<__m512i>(rest), __mmask8((1u << n) - 1), reinterpret<__m512i>(v)));
#elif PT_GNU_VECTORS && defined(__AVX2__)
        if constexpr (sizeof(T) == 4 || sizeof(T) == 8)
            return reinterpret<vector>(_mm256_blendv_epi8(reinterpret<__m256i>(rest),
                                                          reinterpret<__m256i>(v),
                                                          first_lanes(int(sizeof(T)) / 4 * n)));
#endif
        T a[width], b[width];
        store(a, v);
        store(b, rest);
        for (int l = 0; l < n; ++l) b[l] = a[l];
        return load(b);
    }
    /* lanes 0, 2, 4... of a, then 1, 3, 5... of b: with b loaded one vector minus one element after
     * a, every other element of the 2 * width - 1 */
    static inline vector every_other(vector a, vector b) {
#if PT_SHUFFLE_VECTORS
        return chosen(
            a, b, [](int l) { return 2 * l + (l >= width / 2); },
            std::make_integer_sequence<int, width>{});
#else
        return chosen(a, b, [](int l) { return 2 * l + (l >= width / 2); });
#endif
    }
    /* to[0...2 * width) = a0 b0 a1 b1 ... */
    static inline void store_zipped(T *to, vector a, vector b) {
        const auto first = [](int l) { return l % 2 * width + l / 2; };
        const auto second = [](int l) { return l % 2 * width + (width + l) / 2; };
#if PT_SHUFFLE_VECTORS
        store(to, chosen(a, b, first, std::make_integer_sequence<int, width>{}));
        store(to + width, chosen(a, b, second, std::make_integer_sequence<int, width>{}));
#else
        store(to, chosen(a, b, first));
        store(to + width, chosen(a, b, second));
#endif
    }
    /* folds the lanes in a fixed tree (l with l + width/2, and so on) down to KEEP lanes; f is
     * called with vectors of any width and with scalars */
    template <int KEEP, class F>
    static inline void fold(vector v, T *result, F f) {
#if PT_SHUFFLE_VECTORS
        fold_halves<KEEP, width>(v, result, f);
#else
        T lane[width];
        store(lane, v);
        for (int half = width / 2; half >= KEEP; half /= 2)
            for (int l = 0; l < half; ++l) lane[l] = f(lane[l], lane[l + half]);
        memcpy(result, lane, KEEP * sizeof(T));
#endif
    }
    static inline T sum(vector v) {
        T result;
        fold<1>(v, &result, [](auto a, auto b) { return a + b; });
        return result;
    }

  private:
    /* lane l of the result is lane from(l) of the concatenation of a and b */
#if PT_SHUFFLE_VECTORS
    template <class F, int... L>
    static inline vector chosen(vector a, vector b, F from, std::integer_sequence<int, L...>) {
        return __builtin_shufflevector(a, b, from(L)...);
    }
#else
    template <class F>
    static inline vector chosen(vector a, vector b, F from) {
        T both[2 * width], lane[width];
        store(both, a);
        store(both + width, b);
        for (int l = 0; l < width; ++l) lane[l] = both[from(l)];
        return load(lane);
    }
#endif
#if PT_SHUFFLE_VECTORS
    /* lanes FROM, FROM + 1... of v as a vector of their own, wrapping
     * around after the last lane */
    template <int FROM, int COUNT, class V, int... L>
    static inline auto part(V v, std::integer_sequence<int, L...>) {
        return __builtin_shufflevector(v, v, ((FROM + L) % COUNT)...);
    }
    /* folds halves as vectors down to 16 bytes, then a vector with its own rotation */
    template <int KEEP, int N, class V, class F>
    static inline void fold_halves(V v, T *result, F f) {
        if constexpr (N == KEEP) memcpy(result, &v, KEEP * sizeof(T));
        else {
            constexpr int register16 = 16 / int(sizeof(T));
            using lanes = std::make_integer_sequence<int, (N > register16 ? N / 2 : register16)>;
            if constexpr (N > register16)
                fold_halves<KEEP, N / 2>(f(part<0, N>(v, lanes{}), part<N / 2, N>(v, lanes{})),
                                         result, f);
            else fold_halves<KEEP, N / 2>(f(v, part<N / 2, register16>(v, lanes{})), result, f);
        }
    }
#endif
#if PT_GNU_VECTORS && defined(__AVX2__)
    template <class To, class From>
    static inline To reinterpret(From v) {
        static_assert(sizeof(To) == sizeof(From), "");
        To to;
        memcpy(&to, &v, sizeof to);
        return to;
    }
    static inline __m256i first_lanes(int n) {
        return _mm256_cmpgt_epi32(_mm256_set1_epi32(n), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
    }
#endif
};

/* the first and the second half of the lanes as doubles */
inline void widen(simd<float>::vector v, simd<double>::vector &first,
                  simd<double>::vector &second) {
#if PT_GNU_VECTORS && defined(__AVX512F__)
    const __m512 x = __m512(v);
    first = simd<double>::vector(_mm512_cvtps_pd(_mm512_castps512_ps256(x)));
    second = simd<double>::vector(_mm512_cvtps_pd(
        _mm256_castpd_ps(_mm512_extractf64x4_pd(_mm512_castps_pd(x), 1))));
#elif PT_GNU_VECTORS && defined(__AVX2__)
    const __m256 x = __m256(v);
    first = simd<double>::vector(_mm256_cvtps_pd(_mm256_castps256_ps128(x)));
    second = simd<double>::vector(_mm256_cvtps_pd(_mm256_extractf128_ps(x, 1)));
#elif PT_GNU_VECTORS && defined(__SSE2__)
    const __m128 x = __m128(v);
    first = simd<double>::vector(_mm_cvtps_pd(x));
    second = simd<double>::vector(_mm_cvtps_pd(_mm_movehl_ps(x, x)));
#else
    constexpr int W = simd<float>::width;
    float lane[W];
    double wide[W];
    simd<float>::store(lane, v);
    for (int l = 0; l < W; ++l) wide[l] = double(lane[l]);
    first = simd<double>::load(wide);
    second = simd<double>::load(wide + W / 2);
#endif
}

/* Selections, for vectors of any width and for scalars. select_max and select_min keep the first
 * NaN. maximum and minimum keep a where b is NaN; each is one instruction. */
template <class V>
inline V select_max(V a, V b) {
    return a != a ? a : b <= a ? a : b;
}
template <class V>
inline V select_min(V a, V b) {
    return a != a ? a : b >= a ? a : b;
}
template <class V>
inline V maximum(V a, V b) {
    return b > a ? b : a;
}
template <class V>
inline V minimum(V a, V b) {
    return b < a ? b : a;
}
/* b where it is NaN, else a */
template <class V>
inline V keep_nan(V a, V b) {
    return b != b ? b : a;
}
#if !PT_GNU_VECTORS
#define PT_EACH_LANE(name)                                                                   \
    template <class T>                                                                       \
    inline portable_vector<T> name(portable_vector<T> a, portable_vector<T> b) {             \
        return portable_vector<T>::each(a, b, [](T x, T y) { return name(x, y); });          \
    }
PT_EACH_LANE(select_max)
PT_EACH_LANE(select_min)
PT_EACH_LANE(maximum)
PT_EACH_LANE(minimum)
PT_EACH_LANE(keep_nan)
#undef PT_EACH_LANE
#endif

} // namespace
#endif
