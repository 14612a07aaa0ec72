// Attention's forward, for one or two stages of columns of values, and for few queries.
#include "attention_base.cuh"

#define PT_ATTEND(name, rows, stages) \
    PT_KERNEL_SYNC(name, AttentionArgs, a, PT_ATTENTION_THREADS) { \
        PT_DYNAMIC_SHARED(C, memory); \
        attend<FORWARD, rows, stages>(a, memory); \
    }
PT_ATTEND(attention_narrow, ROWS, 1)
PT_ATTEND(attention_wide, ROWS, 2)
PT_ATTEND(attention_few, 1, 2)

// Combines the results of ranges of keys: each is weighted by e^(the range's log-sum-exp - that of
// all keys). A warp computes a query.
PT_KERNEL_SYNC(attention_combine, AttentionArgs, a, PT_ATTENTION_THREADS) {
    const C *const each_lse = static_cast<const C *>(a.split_lse), *const each =
                                                                       static_cast<const C *>(
                                                                           a.split_out);
    const int64_t rows = a.all * a.l, warps = thread_count() / 32;
    const int lane = threadIdx.x & 31;
    for (int64_t row = thread_index() / 32; row < rows; row += warps) {
        C top = -pt::infinity<C>(), total = 0;
        for (int64_t j = lane; j < a.splits; j += 32)
            top = pt::maximum(top, each_lse[j * rows + row]);
        top = warp_reduce(top, [](C x, C y) { return pt::maximum(x, y); });
        const C base = top == -pt::infinity<C>() ? C(0) : top;
        for (int64_t j = lane; j < a.splits; j += 32)
            total += pt::exp(each_lse[j * rows + row] - base);
        total = warp_reduce(total, plus());
        if (lane == 0)
            static_cast<C *>(a.lse)[row] =
                total == C(0) ? -pt::infinity<C>() : base + pt::log(total);
        const C factor = total == C(0) ? C(0) : C(1) / total;
        for (int64_t v = lane; v < a.v; v += 32) {
            C sum = 0;
            for (int64_t j = 0; j < a.splits; j++)
                sum += pt::exp(each_lse[j * rows + row] - base) * each[(j * rows + row) * a.v + v];
            static_cast<T *>(a.out)[row * a.v + v] = down<T>(sum * factor);
        }
    }
}
