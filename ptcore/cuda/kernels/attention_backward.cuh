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

// 1 / the sum of e^(score - lse) over the keys of query q. It is 1 but for rounding, except where
// lse is so large that rounding has left few digits of the sum in it: only then it is computed.
// All lanes of a warp call.
PT_DEVICE C share_of(const AttentionArgs &a, int64_t n, int64_t h, int64_t q, C lse) {
    const C most = sizeof(T) == 2 ? C(2000) : sizeof(C) == 4 ? C(300) : C(1e4);
    if (!(pt::abs(lse) > most && pt::isfinite(lse))) return C(1);
    const Head head = masks_of(a, n, h);
    const T *const query = head_of(a.query, n, h) + q * a.query.row;
    const int64_t until = a.causal && q + 1 < a.s ? q + 1 : a.s;
    int64_t shared = h;
    take_rest(shared, a.by_group);
    const T *const keys = head_of(a.key, n, shared);
    C sum = 0;
    for (int64_t k = threadIdx.x % 32; k < until; k += 32) {
        const T *const key = keys + k * a.key.row;
        Elements<C, 1> score = {{C(0)}};
        for (int e = 0; e < a.e; e++) score.v[0] += up(query[e]) * up(key[e]);
        score.v[0] *= (C)a.scale;
        sum += pt::exp(masked<false>(a, head, q, k, score).v[0] - lse);
    }
    sum = warp_reduce(sum, plus());
    return sum > C(0) ? C(1) / sum : C(1);
}

// delta = g . result, and the share, of each query; a warp computes a query. The result is of type
// R.
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
        const C share = share_of(a, n, h, line, r < rows ? static_cast<const C *>(a.lse)[r] : C(0));
        if (r < rows && threadIdx.x % 32 == 0)
            static_cast<C *>(a.delta)[r] = sum, static_cast<C *>(a.share)[r] = share;
    }
}
PT_KERNEL_SYNC(PT_ATTENTION(delta), AttentionArgs, a, PT_ATTENTION_THREADS) {
    if (a.wide_result) delta_of_rows<C>(a);
    else delta_of_rows<T>(a);
}
