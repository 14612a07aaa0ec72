/* Conversion loops between all pairs of dtypes, compiled once per ISA level.
 *
 * Exports pt_cast_table_<PT_ISA>[from][to]. Above the base level the complex entries are NULL.
 * Types share a loop where the bits agree: the sign of an integer destination
 * does not matter (conversions wrap), and equal types copy. bool is read as 0 or
 * 1 whatever its bytes are. */
#include "ptcore/convert.h"
#include "loops.h"

#define PT_IS_base 1
#define PT_WITH_COMPLEX PT_CAT(PT_IS_, PT_ISA)

namespace pt { namespace {

template<class F, class To> void cast_loop(char *const *ptr, int64_t n, const void *) {
    To *PT_RESTRICT r = (To *)ptr[0];
    const F *PT_RESTRICT a = (const F *)ptr[1];
    PT_IVDEP
    for (int64_t i = 0; i < n; i++) r[i] = element<F, To>::cast(a[i]);
}

/* Floats to integers: a block whose values fit int32 needs no scalar 64-bit conversions. */
template<class F, class To> void narrow_loop(char *const *ptr, int64_t n, const void *params) {
    for (int64_t k = 0; k < n; k += PT_TILE) {
        To *PT_RESTRICT r = (To *)ptr[0] + k;
        const F *PT_RESTRICT a = (const F *)ptr[1] + k;
        int64_t m = n - k < PT_TILE ? n - k : (int64_t)PT_TILE;
        int outside = 0;
        for (int64_t i = 0; i < m; i++) outside |= !(abs(a[i]) < F(2147483648.0));
        if (PT_UNLIKELY(outside)) {
            char *p[2] = {(char *)r, (char *)const_cast<F *>(a)};
            cast_loop<F, To>(p, m, params);
        } else {
            PT_IVDEP
            for (int64_t i = 0; i < m; i++) r[i] = (To)(int32_t)a[i];
        }
    }
}

template<class T> void copy_loop(char *const *ptr, int64_t n, const void *) {
    memcpy(ptr[0], ptr[1], (size_t)n * sizeof(T));
}
void half_to_float_loop(char *const *ptr, int64_t n, const void *) {
    half_row_to_float((const half *)ptr[1], (float *)ptr[0], n);
}
void float_to_half_loop(char *const *ptr, int64_t n, const void *) {
    float_row_to_half((const float *)ptr[1], (half *)ptr[0], n);
}

/* The loop for a pair of types. */
template<class F, class To> struct choose { static constexpr pt_loop loop = cast_loop<F, To>; };
template<class T> struct choose<T, T> { static constexpr pt_loop loop = copy_loop<T>; };
template<> struct choose<half, float> { static constexpr pt_loop loop = half_to_float_loop; };
template<> struct choose<float, half> { static constexpr pt_loop loop = float_to_half_loop; };
#define PT_NARROW(F, To) \
    template<> struct choose<F, To> { static constexpr pt_loop loop = narrow_loop<F, To>; };
PT_NARROW(float, uint8_t)
PT_NARROW(float, uint16_t)
PT_NARROW(float, uint32_t)
PT_NARROW(float, uint64_t)
PT_NARROW(float, int64_t)
PT_NARROW(double, uint8_t)
PT_NARROW(double, uint16_t)
PT_NARROW(double, uint32_t)
PT_NARROW(double, uint64_t)
PT_NARROW(double, int64_t)
#undef PT_NARROW

/* Integers to integers of at most their width: the source's sign does not matter either. */
template<class F, class To> struct narrower {
    static constexpr pt_loop loop = choose<F, To>::loop;
};
#define PT_SAME_BITS(S, U, To) \
    template<> struct narrower<S, To> { static constexpr pt_loop loop = choose<U, To>::loop; };
PT_SAME_BITS(int8_t, uint8_t, uint8_t)
PT_SAME_BITS(int16_t, uint16_t, uint8_t)
PT_SAME_BITS(int16_t, uint16_t, uint16_t)
PT_SAME_BITS(int32_t, uint32_t, uint8_t)
PT_SAME_BITS(int32_t, uint32_t, uint16_t)
PT_SAME_BITS(int32_t, uint32_t, uint32_t)
PT_SAME_BITS(int64_t, uint64_t, uint8_t)
PT_SAME_BITS(int64_t, uint64_t, uint16_t)
PT_SAME_BITS(int64_t, uint64_t, uint32_t)
PT_SAME_BITS(int64_t, uint64_t, uint64_t)
PT_SAME_BITS(int8_t, uint8_t, boolean)
PT_SAME_BITS(int16_t, uint16_t, boolean)
PT_SAME_BITS(int32_t, uint32_t, boolean)
PT_SAME_BITS(int64_t, uint64_t, boolean)
#undef PT_SAME_BITS

#if PT_WITH_COMPLEX
#  define PT_COMPLEX(loop) loop
#else
#  define PT_COMPLEX(loop) nullptr
#endif
#define PT_ROW(F) { \
    narrower<F, boolean>::loop, narrower<F, uint8_t>::loop, narrower<F, uint8_t>::loop, \
    narrower<F, uint16_t>::loop, narrower<F, uint16_t>::loop, narrower<F, uint32_t>::loop, \
    narrower<F, uint32_t>::loop, narrower<F, uint64_t>::loop, narrower<F, int64_t>::loop, \
    choose<F, half>::loop, choose<F, bfloat16>::loop, choose<F, float>::loop, \
    choose<F, double>::loop, PT_COMPLEX((choose<F, complex64>::loop)), \
    PT_COMPLEX((choose<F, complex128>::loop)) }

}}  /* namespace pt, unnamed */

using namespace pt;

extern "C" {
extern const pt_loop PT_CAT(pt_cast_table_, PT_ISA)[PT_NDTYPES][PT_NDTYPES];
const pt_loop PT_CAT(pt_cast_table_, PT_ISA)[PT_NDTYPES][PT_NDTYPES] = {
    PT_ROW(boolean), PT_ROW(uint8_t), PT_ROW(int8_t), PT_ROW(uint16_t), PT_ROW(int16_t),
    PT_ROW(uint32_t), PT_ROW(int32_t), PT_ROW(uint64_t), PT_ROW(int64_t), PT_ROW(half),
    PT_ROW(bfloat16), PT_ROW(float), PT_ROW(double),
#if PT_WITH_COMPLEX
    PT_ROW(complex64), PT_ROW(complex128),
#else
    {}, {},
#endif
};
}
