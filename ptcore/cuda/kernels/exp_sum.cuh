// The sum of exponentials relative to the largest so far, in one pass over the numbers (Milakov and
// Gimelshein, 2018).
#pragma once
#include "approximate.cuh"

namespace {

template <class C> struct ExpSum { C top, sum; };

template <class C> PT_DEVICE ExpSum<C> no_exp_sum() { return ExpSum<C>{-pt::infinity<C>(), C(0)}; }

template <class C> PT_DEVICE ExpSum<C> merge_exp_sums(ExpSum<C> x, ExpSum<C> y) {
    const C top = x.top > y.top ? x.top : y.top;
    if (top == -pt::infinity<C>()) return ExpSum<C>{top, x.sum + y.sum};
    return ExpSum<C>{top, x.sum * math::exp(x.top - top) + y.sum * math::exp(y.top - top)};
}

// A NaN or infinity among x makes the sum NaN, and with it all results.
template <int V, class C> PT_DEVICE void add_exps(ExpSum<C> &s, const C *x) {
    C top = s.top;
    PT_UNROLL for (int v = 0; v < V; v++) top = x[v] > top ? x[v] : top;
    if (top > s.top) {
        s.sum *= math::exp(s.top - top);
        s.top = top;
    }
    PT_UNROLL
    for (int v = 0; v < V; v++)
        s.sum += x[v] == -pt::infinity<C>() ? C(0) : math::exp(x[v] - s.top);
}

struct MergeExpSums {
    template <class C> PT_DEVICE_MEMBER ExpSum<C> operator()(ExpSum<C> x, ExpSum<C> y) const {
        return merge_exp_sums(x, y);
    }
};

}  // namespace
