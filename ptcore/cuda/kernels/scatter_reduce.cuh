// Products and extremes gathered at the places of an index, in any order. Each step rounds to the
// element type; NaN wins among extremes. No exchange of a word can change a complex128: one thread
// for each line along the dim multiplies them.
#include "atomic.cuh"
#include "index_base.cuh"

namespace {

#if PT_TCODE == 0
typedef uint8_t T;                      // 0 is false, all else is true
PT_DEVICE T value_at(const T *p) { return *p != 0; }
#else
typedef PT_T T;
PT_DEVICE T value_at(const T *p) { return *p; }
#endif
#if PT_TCODE > 0 && PT_TCODE < 9
PT_DEVICE T product(T x, T y) { return (T)((uint64_t)x * (uint64_t)y); }        // it wraps
#elif PT_TCODE == 0
PT_DEVICE T product(T x, T y) { return (x != 0) & (y != 0); }
#else
PT_DEVICE T product(T x, T y) { return down<T>(up(x) * up(y)); }
#endif

struct Times {
    T y;
    PT_DEVICE_MEMBER T operator()(T x) const { return product(x, y); }
};
#if PT_TCODE < 13
template <bool MOST> struct Extreme {
    T y;
    PT_DEVICE_MEMBER T operator()(T x) const {
        const opmath<T>::type a = up(x), b = up(y);
        return b != b || (a == a && (MOST ? b > a : b < a)) ? y : x;
    }
};
#endif

#if PT_TCODE < 14
template <class F> struct Change {
    PT_DEVICE_MEMBER void operator()(T *to, const T *from) const {
        atomic_by<sizeof(T)>::change(to, F{value_at(from)});
    }
};
#else
PT_DEVICE void multiply_lines(const IndexArgs &a) {
    PT_GRID_STRIDE(i, a.n) {
        const Offsets<3> o = offsets_of<3>(a.walk, (uint32_t)i);
        for (int64_t k = 0; k < a.line; k++) {
            const char *index = a.data[2] + o.at[2] + k * a.line_strides[1];
            int64_t by;
            if (!moved(a, *reinterpret_cast<const int64_t *>(index), by)) continue;
            T *to = reinterpret_cast<T *>(a.data[1] + o.at[1] + by);
            *to = product(*to, *reinterpret_cast<const T *>(a.data[0] + o.at[0] +
                                                            k * a.line_strides[0]));
        }
    }
}
#endif

}  // namespace

#if PT_TCODE == 14
PT_KERNEL(scatter_prod_lines, IndexArgs, a, 256) { multiply_lines(a); }
#else
PT_KERNEL(scatter_prod, IndexArgs, a, 256) { each_place<T>(a, Change<Times>()); }
#endif
#if PT_TCODE < 13
PT_KERNEL(scatter_amax, IndexArgs, a, 256) { each_place<T>(a, Change<Extreme<true>>()); }
PT_KERNEL(scatter_amin, IndexArgs, a, 256) { each_place<T>(a, Change<Extreme<false>>()); }
#endif
