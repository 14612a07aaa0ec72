// Attention's gradients by query, key and value, for results of one stage of columns;
// attention_backward_wide.cuh is for wider results.
#include "attention_base.cuh"
#include "divide.cuh"

#ifdef PT_ATTENTION_WIDE
#  define PT_ATTENTION(which) attention_##which##_wide
enum { STAGES = 2 };
#else
#  define PT_ATTENTION(which) attention_##which##_narrow
enum { STAGES = 1 };
#endif

#define PT_ATTEND(which, kind) \
    PT_KERNEL_SYNC(PT_ATTENTION(which), AttentionArgs, a, PT_ATTENTION_THREADS) { \
        PT_DYNAMIC_SHARED(C, memory); \
        attend<kind, ROWS, STAGES>(a, memory); \
    }
PT_ATTEND(query, QUERY)
PT_ATTEND(key, KEY)
PT_ATTEND(value, VALUE)

// delta = g . result for each query; a warp computes a query. The result is of type R.
template <class R> PT_DEVICE void delta_of_rows(const AttentionArgs &a) {
    const int64_t rows = a.blocks, warps = PT_ATTENTION_THREADS / 32;
    for (int64_t base = blockIdx.x * warps; base < rows; base += gridDim.x * warps) {
        const int64_t r = base + threadIdx.x / 32;
        int64_t n = r;
        const int64_t line = take_rest(n, a.by_l), h = take_rest(n, a.by_heads);
        const R *const y = static_cast<const R *>(a.result) + r * a.v;
        const T *const g = head_of(a.g, n, h) + line * a.g.row;
        C sum = 0;
        if (r < rows)
            for (int i = threadIdx.x % 32; i < a.v; i += 32) sum += up(g[i]) * up(y[i]);
        sum = warp_reduce(sum, plus());
        if (r < rows && threadIdx.x % 32 == 0) static_cast<C *>(a.delta)[r] = sum;
    }
}
PT_KERNEL_SYNC(PT_ATTENTION(delta), AttentionArgs, a, PT_ATTENTION_THREADS) {
    if (a.wide_result) delta_of_rows<C>(a);
    else delta_of_rows<T>(a);
}
