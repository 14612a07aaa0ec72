// Random ops; the calls are those of _ops/random/random.cpp, and so are the numbers.
#include <cmath>

#include "families.hpp"
#include "random_args.h"
#include "view.hpp"

namespace pt_cuda {
namespace {

enum { THREADS = 256 };
const Kernel UNIFORM = {"random", "random_uniform"}, NORMAL = {"random", "random_normal"},
             EXPONENTIAL = {"random", "random_exponential"}, DROPOUT = {"random", "random_dropout"},
             POISSON = {"random", "random_poisson"}, BINOMIAL = {"random", "random_binomial"},
             BITS = {"random_whole", "random_bits"}, INTEGERS = {"random_whole", "random_integers"},
             CHANCES = {"random_whole", "random_chances"}, KEEP = {"random_whole", "random_keep"};
const double TWO_TO_32 = 4294967296.0;

RandomArgs args_of(const pt_call *c) {
    RandomArgs a = {};
    a.n = c->out[0].numel, a.out = c->out[0].data;
    a.fault = fault_of(c), a.op = c->op;
    draw_from(c, a.base, a.seed, a.offset);
    return a;
}

// A thread for each block of `each` elements.
int run(pt_call *c, const Kernel &kernel, uint64_t kinds, const RandomArgs &a, int each) {
    if (a.n == 0) return PT_OK;
    if ((uint64_t)a.n > ((uint64_t)1 << 40) * (unsigned)each)
        return failed(c, PT_RUNTIME_ERROR, "needs more than 2**40 random blocks in one call");
    return launch(c, kernel, kinds, blocks_for(c, ceil_div(a.n, each), THREADS, 16), THREADS, a);
}

int floats(pt_call *c, const Kernel &kernel, RandomArgs a) {
    const int dtype = c->out[0].dtype;
    if (!is_floating(dtype)) return failed(c, PT_TYPE_ERROR, "dtype must be floating point");
    return run(c, kernel, types(dtype), a, dtype == PT_FLOAT64 ? 2 : 4);
}

int uniform(pt_call *c) {
    RandomArgs a = args_of(c);
    a.a = c->params[0].d, a.b = c->params[1].d;
    return a.a <= a.b ? floats(c, UNIFORM, a)
                      : failed(c, PT_RUNTIME_ERROR, "from must be at most to");
}

int normal(pt_call *c) {
    RandomArgs a = args_of(c);
    a.a = c->params[0].d, a.b = c->params[1].d;
    return a.b >= 0 ? floats(c, NORMAL, a) : failed(c, PT_RUNTIME_ERROR, "std must be at least 0");
}

int exponential(pt_call *c) {
    RandomArgs a = args_of(c);
    a.a = c->params[0].d;
    return a.a > 0 ? floats(c, EXPONENTIAL, a)
                   : failed(c, PT_RUNTIME_ERROR, "lambd must be above 0");
}

int bits(pt_call *c) {
    const int dtype = c->out[0].dtype;
    if (dtype != PT_BOOL && !is_integral(dtype))
        return failed(c, PT_TYPE_ERROR, "dtype must be bool or an integer type");
    return run(c, BITS, types(dtype), args_of(c), item_size(dtype) == 8 ? 2 : 4);
}

int integers(pt_call *c) {
    RandomArgs a = args_of(c);
    if (is_complex(c->out[0].dtype)) return failed(c, PT_TYPE_ERROR, "dtype must be real");
    const int64_t low = c->params[0].i, high = c->params[1].i;
    if (low >= high) return failed(c, PT_RUNTIME_ERROR, "low must be below high");
    a.low = low, a.range = (uint64_t)high - (uint64_t)low;
    return run(c, INTEGERS, types(c->out[0].dtype), a, 1);
}

int bernoulli(pt_call *c) {
    RandomArgs a = args_of(c);
    if (is_complex(c->out[0].dtype)) return failed(c, PT_TYPE_ERROR, "dtype must be real");
    if (c->nin == 1) {
        const int dtype = c->in[0].dtype;
        if (!is_floating(dtype))
            return failed(c, PT_TYPE_ERROR, "probabilities must be floating point");
        Contiguous p(c, c->in[0]);
        if (!p.ok()) return PT_MEMORY_ERROR;
        a.in = p.view.data;
        return run(c, CHANCES, types(c->out[0].dtype, dtype), a, 4);
    }
    const double p = c->params[0].d;
    if (!(p >= 0 && p <= 1)) return failed(c, PT_RUNTIME_ERROR, "p must be in [0, 1]");
    a.threshold = (uint64_t)std::ceil(p * TWO_TO_32);
    return run(c, CHANCES, types(c->out[0].dtype), a, 4);
}

int dropout(pt_call *c) {
    RandomArgs a = args_of(c);
    a.a = c->params[0].d;
    if (!(a.a >= 0 && a.a <= 1)) return failed(c, PT_VALUE_ERROR, "p must be in [0, 1]");
    Contiguous x(c, c->in[0]);
    if (!x.ok()) return PT_MEMORY_ERROR;
    a.in = x.view.data, a.mask = reinterpret_cast<uint8_t *>(c->out[1].data);
    a.threshold = (uint64_t)std::ceil(a.a * TWO_TO_32);
    return run(c, DROPOUT, types(c->out[0].dtype), a, 8);
}

int poisson(pt_call *c) {
    RandomArgs a = args_of(c);
    Contiguous x(c, c->in[0]);
    if (!x.ok()) return PT_MEMORY_ERROR;
    a.in = x.view.data;
    const int dtype = c->out[0].dtype;
    if (!is_floating(dtype)) return failed(c, PT_TYPE_ERROR, "dtype must be floating point");
    return run(c, POISSON, types(dtype), a, 1);
}

int binomial(pt_call *c) {
    RandomArgs a = args_of(c);
    Contiguous n(c, c->in[0]), p(c, c->in[1]);
    if (!n.ok() || !p.ok()) return PT_MEMORY_ERROR;
    a.in = n.view.data, a.probability = p.view.data;
    const int dtype = c->out[0].dtype;
    if (!is_floating(dtype)) return failed(c, PT_TYPE_ERROR, "dtype must be floating point");
    return run(c, BINOMIAL, types(dtype), a, 1);
}

int keep_mask(pt_call *c) {
    const pt_view &state = c->in[0];
    RandomArgs a = args_of(c);
    if (state.dtype != PT_INT64 || state.numel != 2)
        return failed(c, PT_RUNTIME_ERROR, "expected a random state of two int64");
    const double p = c->params[0].d;
    if (!(p >= 0 && p <= 1)) return failed(c, PT_VALUE_ERROR, "p must be in [0, 1]");
    a.state = reinterpret_cast<const int64_t *>(state.data), a.state_step = state.strides[0];
    a.threshold = (uint64_t)std::ceil(p * TWO_TO_32);
    return run(c, KEEP, types(PT_BOOL), a, 4);
}

}  // namespace

const pt_kernel_entry random_kernels[] = {{"random_uniform", uniform},
                                          {"random_normal", normal},
                                          {"random_exponential", exponential},
                                          {"random_bits", bits},
                                          {"random_integers", integers},
                                          {"random_bernoulli", bernoulli},
                                          {"dropout", dropout},
                                          {"random_poisson", poisson},
                                          {"random_binomial", binomial},
                                          {"keep_mask", keep_mask},
                                          {nullptr, nullptr}};

}  // namespace pt_cuda
