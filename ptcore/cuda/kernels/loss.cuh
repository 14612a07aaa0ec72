// nll_loss and cross_entropy over class targets, and their derivatives. Losses of samples are added in one order, in float64.
// A target that is out of bounds is reported and counts as ignored.
#include "dynamic.cuh"
#include "loss_args.h"
#include "report.cuh"

namespace {

typedef PT_T T;
typedef opmath<T>::type C;

PT_DEVICE int size_of(int dtype) { return dtype == 12 ? 8 : dtype == 11 ? 4 : 2; }        // of a float

PT_DEVICE double weight_of(const LossArgs &a, int64_t c) {
    return a.weight ? load_from<double>(a.weight + c * a.weight_stride * size_of(a.weight_dtype), a.weight_dtype) : 1;
}

// The class of a sample, -1 if it is ignored.
PT_DEVICE int64_t class_of(const LossArgs &a, int64_t s) {
    const int64_t c = a.target[s];
    if (c == a.ignored) return -1;
    if (c >= 0 && c < a.classes) return c;
    report(a.fault, a.op, c, 1, a.classes);
    return -1;
}

PT_DEVICE int64_t place(const LossArgs &a, int64_t s, int64_t c) { return (s / a.inner * a.classes + c) * a.inner + s % a.inner; }
PT_DEVICE C value(const LossArgs &a, int64_t s, int64_t c) { return up(reinterpret_cast<const T *>(a.x)[place(a, s, c)]); }

struct larger { PT_DEVICE_MEMBER C operator()(C x, C y) const { return pt::maximum(x, y); } };

// What is known of a sample once its largest input and its sum of exponentials are.
PT_DEVICE void finish(const LossArgs &a, int64_t s, C top, C sum, double smooth_sum) {
    const double log_sum = pt::log((double)sum);
    const int64_t t = class_of(a, s);
    store_to(a.lse + s * size_of(a.lse_dtype), a.lse_dtype, (double)top + log_sum);
    a.sample_weight[s] = t < 0 ? 0 : weight_of(a, t);
    double loss = 0;
    if (t >= 0) {
        loss = (1 - a.smoothing) * weight_of(a, t) * (log_sum - ((double)value(a, s, t) - (double)top));
        if (a.smoothing > 0) loss += a.smoothing / (double)a.classes * (log_sum * a.weight_sum[0] - smooth_sum);
    }
    a.loss[s] = loss;
}

// A warp for each sample: its classes are neighbours.
PT_DEVICE void rows(const LossArgs &a) {
    const int lane = threadIdx.x & 31;
    const int64_t warps = thread_count() >> 5;
    for (int64_t s = thread_index() >> 5; s < a.samples; s += warps) {
        C top = -pt::infinity<C>();
        for (int64_t c = lane; c < a.classes; c += 32) top = pt::maximum(value(a, s, c), top);
        top = warp_reduce(top, larger());
        C sum = 0;
        double smooth = 0;
        for (int64_t c = lane; c < a.classes; c += 32) {
            const C x = value(a, s, c);
            sum += pt::exp(x - top);
            if (a.smoothing > 0) smooth += weight_of(a, c) * ((double)x - (double)top);
        }
        sum = warp_reduce(sum, plus());
        smooth = warp_reduce(smooth, plus());
        if (lane == 0) finish(a, s, top, sum, smooth);
    }
}

// A thread for each sample: neighbouring samples are neighbours.
PT_DEVICE void columns(const LossArgs &a) {
    for (int64_t s = thread_index(); s < a.samples; s += thread_count()) {
        C top = -pt::infinity<C>();
        for (int64_t c = 0; c < a.classes; c++) top = pt::maximum(value(a, s, c), top);
        C sum = 0;
        double smooth = 0;
        for (int64_t c = 0; c < a.classes; c++) {
            const C x = value(a, s, c);
            sum += pt::exp(x - top);
            if (a.smoothing > 0) smooth += weight_of(a, c) * ((double)x - (double)top);
        }
        finish(a, s, top, sum, smooth);
    }
}

PT_DEVICE void nll(const LossArgs &a) {
    for (int64_t s = thread_index(); s < a.samples; s += thread_count()) {
        const int64_t t = class_of(a, s);
        a.sample_weight[s] = t < 0 ? 0 : weight_of(a, t);
        a.loss[s] = t < 0 ? 0 : -a.sample_weight[s] * (double)value(a, s, t);
    }
}

// One block: the sum over samples, each thread's part in order.
PT_DEVICE void total(const LossArgs &a) {
    double sum = 0, weights = 0;
    for (int64_t s = threadIdx.x; s < a.samples; s += blockDim.x) sum += a.loss[s], weights += a.sample_weight[s];
    sum = block_reduce(sum, plus(), 0.0);
    weights = block_reduce(weights, plus(), 0.0);
    if (threadIdx.x == 0) {
        store_to(a.total_out, a.total_dtype, a.reduction == 0 ? 0.0 : weights);
        if (a.reduction) store_to(a.result, a.result_dtype, a.reduction == 1 ? sum / weights : sum);
    }
    if (a.reduction == 0)
        for (int64_t s = threadIdx.x; s < a.samples; s += blockDim.x)
            reinterpret_cast<T *>(a.result)[s] = down<T>((C)a.loss[s]);
}

PT_DEVICE void sum_weights(const LossArgs &a) {
    double sum = 0;
    for (int64_t c = threadIdx.x; c < a.classes; c += blockDim.x) sum += weight_of(a, c);
    sum = block_reduce(sum, plus(), 0.0);
    if (threadIdx.x == 0) *a.weight_sum_out = sum;
}

// d loss / d (a sample's loss)
PT_DEVICE double scale_of(const LossArgs &a, int64_t s) {
    const double g = load_from<double>(a.g + (a.reduction == 0 ? s * size_of(a.g_dtype) : 0), a.g_dtype);
    return a.reduction == 1 ? g / load_from<double>(a.total, a.total_dtype) : g;
}

// (1 - e) w_t (p_c - [c = t]) + e / C (p_c W - w_c), scaled; p = exp(x - lse), W = the sum of weights
PT_DEVICE void entropy_gradient(const LossArgs &a) {
    const int64_t n = a.samples * a.classes;
    const double even = a.smoothing / (double)a.classes;
    for (int64_t i = thread_index(); i < n; i += thread_count()) {
        const int64_t c = i / a.inner % a.classes, s = i / (a.inner * a.classes) * a.inner + i % a.inner, t = class_of(a, s);
        double r = 0;
        if (t >= 0) {
            const double lse = load_from<double>(a.lse_in + s * size_of(a.lse_dtype), a.lse_dtype);
            const double p = pt::exp((C)(up(reinterpret_cast<const T *>(a.x)[i]) - (C)lse)), w = (1 - a.smoothing) * weight_of(a, t);
            r = p * (w + (a.smoothing > 0 ? even * a.weight_sum[0] : 0)) - (c == t ? w : 0);
            if (a.smoothing > 0) r -= even * weight_of(a, c);
            r *= scale_of(a, s);
        }
        reinterpret_cast<T *>(a.out)[i] = down<T>((C)r);
    }
}

PT_DEVICE void likelihood_gradient(const LossArgs &a) {
    const int64_t n = a.samples * a.classes;
    for (int64_t i = thread_index(); i < n; i += thread_count()) {
        const int64_t c = i / a.inner % a.classes, s = i / (a.inner * a.classes) * a.inner + i % a.inner, t = class_of(a, s);
        reinterpret_cast<T *>(a.out)[i] = down<T>(t == c ? (C)(-weight_of(a, t) * scale_of(a, s)) : C(0));
    }
}

}  // namespace

PT_KERNEL_SYNC(cross_entropy_rows, LossArgs, a, 256) { rows(a); }
PT_KERNEL(cross_entropy_columns, LossArgs, a, 256) { columns(a); }
PT_KERNEL(nll_loss, LossArgs, a, 256) { nll(a); }
PT_KERNEL_SYNC(loss_total, LossArgs, a, 256) { total(a); }
PT_KERNEL_SYNC(loss_weights, LossArgs, a, 256) { sum_weights(a); }
PT_KERNEL(cross_entropy_gradient, LossArgs, a, 256) { entropy_gradient(a); }
PT_KERNEL(nll_gradient, LossArgs, a, 256) { likelihood_gradient(a); }
