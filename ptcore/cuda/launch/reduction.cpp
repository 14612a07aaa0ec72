// The host halves of sum, mean, prod, var, std, vector_norm, logsumexp, count_nonzero, any, all,
// amax, amin and of those that give indices: max_dim, min_dim, argmax, argmin.
#include <cmath>

#include "families.hpp"
#include "reduce_plan.hpp"

namespace pt_cuda {
namespace {

const Reduction SUM = PT_REDUCTION_OF("reduce_sum", "sum"),
                PRODUCT = PT_REDUCTION_OF("reduce_prod", "product"),
                AMAX = PT_REDUCTION_OF("reduce_extreme", "amax"),
                AMIN = PT_REDUCTION_OF("reduce_extreme", "amin"),
                ARGMAX = PT_REDUCTION_OF("reduce_index", "argmax"),
                ARGMIN = PT_REDUCTION_OF("reduce_index", "argmin"),
                TRUTH = PT_REDUCTION_OF("reduce_truth", "truth"),
                VARIANCE = PT_REDUCTION_OF("reduce_var", "variance"),
                LOGSUMEXP = PT_REDUCTION_OF("reduce_logsumexp", "logsumexp"),
                NORM_2 = PT_REDUCTION_OF("reduce_norm2", "norm2"),
                NORM_P = PT_REDUCTION_OF("reduce_norm", "norm_p"),
                NORM_MAX = PT_REDUCTION_OF("reduce_norm", "norm_max"),
                NORM_MIN = PT_REDUCTION_OF("reduce_norm", "norm_min");

int refused(pt_call *c) {
    std::snprintf(c->error, sizeof(c->error), "no CUDA kernel from dtype %d to dtype %d",
                  c->in[0].dtype, c->out[0].dtype);
    return PT_TYPE_ERROR;
}
bool is_real_or_complex_float(int dtype) { return is_floating(dtype) || is_complex(dtype); }

int fold(pt_call *c, const Reduction &op, bool mean) {
    const int from = c->in[0].dtype, to = c->out[0].dtype;
    if (from != to && (is_real_or_complex_float(from) || is_complex(to))) return refused(c);
    ReduceArgs a;
    if (int status = plan_reduction(c, 0, false, a)) return status;
    a.out = c->out[0].data;
    a.a = mean ? (double)a.count : 1;
    return reduce(c, op, types(from, to), a);
}
int sum(pt_call *c) { return fold(c, SUM, false); }
int mean(pt_call *c) { return fold(c, SUM, true); }
int prod(pt_call *c) { return fold(c, PRODUCT, false); }

enum { COUNT, ANY, ALL };       // as in kernels/reduce_truth.cuh
int truth(pt_call *c, int kind) {
    ReduceArgs a;
    if (int status = plan_reduction(c, 0, false, a)) return status;
    a.out = c->out[0].data;
    a.a = kind;
    a.b = (double)a.count;
    return reduce(c, TRUTH, types(c->in[0].dtype), a);
}
int count_nonzero(pt_call *c) { return truth(c, COUNT); }
int any(pt_call *c) { return truth(c, ANY); }
int all(pt_call *c) { return truth(c, ALL); }

int logsumexp(pt_call *c) {
    ReduceArgs a;
    if (int status = plan_reduction(c, 0, false, a)) return status;
    a.out = c->out[0].data;
    return reduce(c, LOGSUMEXP, types(c->in[0].dtype), a);
}

int variance(pt_call *c, bool root) {
    ReduceArgs a;
    if (int status = plan_reduction(c, 0, false, a)) return status;
    a.out = root ? nullptr : c->out[0].data;
    a.out2 = root ? c->out[0].data : nullptr;
    a.a = c->params[1].d;
    a.b = (double)a.count;
    return reduce(c, VARIANCE, types(c->in[0].dtype), a);
}
int var(pt_call *c) { return variance(c, false); }
int std_of(pt_call *c) { return variance(c, true); }

int vector_norm(pt_call *c) {
    ReduceArgs a;
    if (int status = plan_reduction(c, 1, false, a)) return status;
    a.out = c->out[0].data;
    a.a = c->params[0].d;
    const Reduction &op = a.a == 2           ? NORM_2
                          : a.a == HUGE_VAL  ? NORM_MAX
                          : a.a == -HUGE_VAL ? NORM_MIN
                                             : NORM_P;
    return reduce(c, op, types(c->in[0].dtype, c->out[0].dtype), a);
}

int checked(pt_call *c, const ReduceArgs &a) {
    if (a.count || !a.outputs) return PT_OK;
    return failed(c, PT_INDEX_ERROR,
                  "expected reduction dim to have non-zero size, got an empty one");
}
int extreme(pt_call *c, const Reduction &op) {
    ReduceArgs a;
    if (int status = plan_reduction(c, 0, false, a)) return status;
    if (int status = checked(c, a)) return status;
    a.out = c->out[0].data;
    return reduce(c, op, types(c->in[0].dtype), a);
}
int amax(pt_call *c) { return extreme(c, AMAX); }
int amin(pt_call *c) { return extreme(c, AMIN); }

int index(pt_call *c, const Reduction &op, bool values) {
    ReduceArgs a;
    if (int status = plan_reduction(c, 0, true, a)) return status;
    if (int status = checked(c, a)) return status;
    a.out = values ? c->out[0].data : nullptr;
    a.out2 = c->out[values ? 1 : 0].data;
    return reduce(c, op, types(c->in[0].dtype), a);
}
int max_dim(pt_call *c) { return index(c, ARGMAX, true); }
int min_dim(pt_call *c) { return index(c, ARGMIN, true); }
int argmax(pt_call *c) { return index(c, ARGMAX, false); }
int argmin(pt_call *c) { return index(c, ARGMIN, false); }

}  // namespace

const pt_kernel_entry reduction_kernels[] = {{"sum", sum},
                                             {"mean", mean},
                                             {"prod", prod},
                                             {"var", var},
                                             {"std", std_of},
                                             {"vector_norm", vector_norm},
                                             {"logsumexp", logsumexp},
                                             {"count_nonzero", count_nonzero},
                                             {"any", any},
                                             {"all", all},
                                             {"amax", amax},
                                             {"amin", amin},
                                             {"max_dim", max_dim},
                                             {"min_dim", min_dim},
                                             {"argmax", argmax},
                                             {"argmin", argmin},
                                             {nullptr, nullptr}};

}  // namespace pt_cuda
