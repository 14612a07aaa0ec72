// The host halves of kernels over many tensors (ptcore/backend.h says how they are called). The
// records of the tensors are split over as many launches as needed.
#include <cstring>

#include "backend.hpp"
#include "many_args.h"
#include "reduce_plan.hpp"
#include "steps.h"

namespace pt_cuda {
namespace {

const Kernel SCALE = {"many", "many_scale"}, ZERO = {"many", "many_zero"},
             SQUARES = {"many", "many_squares"}, NORM = {"many", "many_norm"};

// Launches `kernel` over n tensors whose operand k is views[k][i]; own(i, words) adds `extra` words
// to a record.
template <class F>
int over(pt_call *c, const Kernel &kernel, ManyArgs &a, int64_t n, const pt_view *const *views,
         int operands, int extra, F own) {
    const int head = PT_MANY_HEAD + operands,
              room = (int)(sizeof(a.records) / sizeof(a.records[0]));
    a.words = head + extra;
    for (int64_t i = 0; i < n;) {
        a.chunks = a.count = 0;
        for (; i < n && (a.count + 1) * a.words <= room; i++) {
            if (views[0][i].numel == 0) continue;
            uint64_t *record = a.records + a.count++ * a.words;
            record[0] = (uint64_t)a.chunks, record[1] = (uint64_t)views[0][i].numel;
            for (int k = 0; k < operands; k++)
                record[PT_MANY_HEAD + k] = (uint64_t)(uintptr_t)views[k][i].data;
            own(i, record + head);
            a.chunks += ceil_div(views[0][i].numel, PT_MANY_CHUNK);
        }
        if (a.count == 0) continue;
        const Grid grid = blocks_for(c, a.chunks, 1, 16);
        if (int status = launch(c, kernel, types(views[0][0].dtype), grid, PT_MANY_THREADS, a))
            return status;
        if (a.partial) a.partial += a.chunks;
    }
    return PT_OK;
}
void nothing(int64_t, uint64_t *) {}

// A step's parameters are its shared numbers, then each tensor's own; outputs are its written
// operands.
template <template <class> class S, class C> int step(pt_call *c, const Kernel &kernel) {
    constexpr int written = S<C>::written, shared = S<C>::shared, own = S<C>::own;
    const pt_param *p = c->params;
    const pt_view *views[written + 1];
    ManyArgs a = {};
    C numbers[shared];
    static_assert(sizeof(numbers) <= sizeof(a.numbers), "they travel there");
    for (int k = 0; k < shared; k++) numbers[k] = C(p[k].d);
    std::memcpy(a.numbers, numbers, sizeof(numbers));
    for (int k = 0; k < written; k++) views[k] = c->out + (int64_t)k * c->nin;
    views[written] = c->in;
    constexpr int extra = (int)((own * sizeof(C) + 7) / 8);
    return over(c, kernel, a, c->nin, views, written + 1, extra, [=](int64_t i, uint64_t *words) {
        C of_tensor[own + 1];
        for (int k = 0; k < own; k++) of_tensor[k] = C(p[shared + i * own + k].d);
        std::memcpy(words, of_tensor, own * sizeof(C));
    });
}

// A step with counters on the device, which are its last outputs. Its parameters are the options: a
// float or, for an option that is a tensor, the number of the tensor among the inputs after the
// gradients.
template <template <class> class S> int step_counted(pt_call *c, const Kernel &kernel,
                                                     const Kernel &count) {
    typedef S<double> D;
    const pt_view *views[D::written + 1 + D::counters];
    int n = c->nin;
    for (int k = 0; k < D::options; k++) n -= c->params[k].kind == PT_PARAM_INT;
    ManyArgs a = {};
    static_assert(D::options <= 12, "they travel in the arguments");
    for (int k = 0; k < D::options; k++) {
        if (c->params[k].kind != PT_PARAM_INT) {
            a.numbers[k] = c->params[k].d;
            continue;
        }
        const pt_view &option = c->in[n + c->params[k].i];
        std::memcpy(&a.numbers[k], &option.data, sizeof(option.data));
        a.option_at = (int16_t)(a.option_at | 1 << k);
        if (option.dtype == PT_FLOAT64) a.wide_option = (int16_t)(a.wide_option | 1 << k);
    }
    for (int k = 0; k < D::written; k++) views[k] = c->out + (int64_t)k * n;
    views[D::written] = c->in;
    for (int k = 0; k < D::counters; k++)
        views[D::written + 1 + k] = c->out + (int64_t)(D::written + k) * n;
    a.single = c->out[(int64_t)D::written * n].dtype == PT_FLOAT32;
    int status = over(c, kernel, a, n, views, D::written + 1 + D::counters, 0, nothing);
    return status ? status : over(c, count, a, n, views, D::written + 1 + D::counters, 0, nothing);
}

#define STEP(NAME)                                                                     \
    int step_##NAME(pt_call *c) {                                                      \
        static const Kernel kernel = {"step:" #NAME, "step"};                          \
        return c->in[0].dtype == PT_FLOAT64 ? step<pt::NAME##_step, double>(c, kernel) \
                                            : step<pt::NAME##_step, float>(c, kernel); \
    }                                                                                  \
    int counted_##NAME(pt_call *c) {                                                   \
        static const Kernel kernel = {"step:" #NAME, "step_counted"},                  \
                            count = {"step:" #NAME, "step_count"};                     \
        return step_counted<pt::NAME##_step>(c, kernel, count);                        \
    }
PT_STEPS(STEP)

int over_outputs(pt_call *c, const Kernel &kernel) {
    const pt_view *views[1] = {c->out};
    ManyArgs a = {};
    a.number = c->nin ? c->in[0].data : nullptr;
    return over(c, kernel, a, c->nout, views, 1, 0, nothing);
}
int scale(pt_call *c) { return over_outputs(c, SCALE); }
int zero(pt_call *c) { return over_outputs(c, ZERO); }

int total_norm(pt_call *c) {
    const pt_view *views[1] = {c->in};
    int64_t chunks = 0;
    for (int i = 0; i < c->nin; i++) chunks += ceil_div(c->in[i].numel, PT_MANY_CHUNK);
    Scratch sums(c, 8 * chunks);
    if (chunks && !sums.data) return PT_MEMORY_ERROR;
    ManyArgs a = {};
    a.partial = static_cast<double *>(sums.data);
    if (int status = over(c, SQUARES, a, c->nin, views, 1, 0, nothing)) return status;
    const ManyNormArgs last = {c->out[0].data, static_cast<double *>(sums.data), chunks};
    return launch(c, NORM, types(c->out[0].dtype), Grid{1, 1, 1}, 1024, last);
}

#define ENTRY(NAME) {"step:" #NAME, step_##NAME}, {"step_counted:" #NAME, counted_##NAME},
const pt_kernel_entry many_kernels[] = {
    {"total_norm", total_norm}, {"scale", scale}, {"zero", zero}, PT_STEPS(ENTRY)};

}  // namespace

pt_kernel kernel_by_name(const char *name) {
    for (const pt_kernel_entry &e : many_kernels)
        if (!std::strcmp(e.name, name)) return e.kernel;
    return nullptr;
}

}  // namespace pt_cuda
