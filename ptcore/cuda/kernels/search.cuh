// The places of elements among sorted ones, by bisection; NaN is greater than every number.
#include "divide.cuh"
#include "sort_args.h"

PT_KERNEL(search_places, SearchArgs, a, 256) {
    PT_GRID_STRIDE(i, a.total) {
        const PT_T *sorted =
            static_cast<const PT_T *>(a.sorted) + (a.single ? 0 : divided(i, a.width) * a.n);
        const opmath<PT_T>::type value = up(load(static_cast<const PT_T *>(a.in), i));
        int64_t low = 0, high = a.n;
        while (low < high) {
            const int64_t middle = low + (high - low) / 2;
            const opmath<PT_T>::type x = up(load(sorted, middle));
            if ((x == x || (a.right && value != value)) && !(a.right ? x > value : x >= value))
                low = middle + 1;
            else high = middle;
        }
        a.out[i] = low;
    }
}
