// Convolution by cuDNN: a plan (descriptors and the algorithm that cuDNN's heuristics choose)
// is made once for sizes, dtype and settings, and kept. Tensors are row-major; others are
// copied.
#include "cudnn.hpp"

#include <atomic>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include "cublas.hpp"
#include "handles.hpp"
#include "libraries.hpp"
#include "view.hpp"

namespace pt_cuda {

Dnn dnn;
DnnSettings dnn_settings;

namespace {

enum { TYPE_FLOAT = 0, TYPE_DOUBLE = 1, TYPE_HALF = 2, TYPE_BFLOAT16 = 9 };
enum { FORMAT_NCHW = 0, CROSS_CORRELATION = 1, DETERMINISTIC = 1 };
enum { DEFAULT_MATH = 0, TENSOR_OP_MATH = 1, FMA_MATH = 3 };
enum { MOST_PLANS = 4096, CHOICES = 8 };

thread_local Handles<DnnHandle> handles;

// Everything that a plan depends on, as ints, so that bytes compare.
struct Key {
    int device, kind, type, math, deterministic, groups, ndim;
    int x[5], w[5], y[5], padding[3], stride[3], dilation[3];
};
static_assert(sizeof(Key) == 31 * 4, "no padding");

struct Plan {
    Plan() = default;
    Plan(const Plan &) = delete;
    Plan &operator=(const Plan &) = delete;
    ~Plan() {
        if (x) dnn.tensor_destroy(x);
        if (y) dnn.tensor_destroy(y);
        if (w) dnn.filter_destroy(w);
        if (convolution) dnn.convolution_destroy(convolution);
    }
    void *x = nullptr, *w = nullptr, *y = nullptr, *convolution = nullptr;
    struct Choice {
        int algorithm;
        size_t room;
    };
    std::vector<Choice> choices;        // the fastest first, each with less room than those before
};
typedef std::shared_ptr<const Plan> Shared;
std::mutex lock;
std::unordered_map<std::string, Shared> &plans =
    *new std::unordered_map<std::string, Shared>;      // threads may outlive main

// Whether the library is installed, which is looked up once. Its absence is no error.
bool is_there() {
    static std::atomic<int> known{0};
    int state = known.load(std::memory_order_acquire);
    if (!state) {
        char error[256];
        state = load_library(LIBRARY_DNN, error) == PT_OK ? 1 : -1;
        known.store(state, std::memory_order_release);
    }
    return state > 0;
}

// A view's sizes with at least two spatial dims (a single one gets a first one of size 1); false if
// an int cannot hold them.
bool read_sizes(const pt_view &v, int (&sizes)[5], int &ndim) {
    const int added = v.ndim == 3;
    ndim = v.ndim + added;
    for (int d = 0; d < v.ndim; d++) sizes[d < 2 ? d : d + added] = (int)v.sizes[d];
    if (added) sizes[2] = 1;
    return v.numel < INT32_MAX;
}

bool read_settings(const pt_call *c, Key &k) {
    int (*const to[3])[3] = {&k.stride, &k.padding, &k.dilation};
    const int spatial = k.ndim - 2;
    for (int p = 0; p < 3; p++) {
        const pt_param &of = c->params[p];
        for (int d = 0; d < spatial; d++) {
            const int from = d - spatial + of.count;
            const int64_t value = from < 0 ? (p != 1) : of.list[from];
            if (value >= INT32_MAX) return false;
            (*to[p])[d] = (int)value;
        }
    }
    return true;
}

int set_tensor(void **made, const Key &k, const int (&sizes)[5]) {
    int strides[5], step = 1;
    for (int d = k.ndim - 1; d >= 0; d--) strides[d] = step, step *= sizes[d];
    const int status = dnn.tensor_create(made);
    return status ? status : dnn.tensor_set(*made, k.type, k.ndim, sizes, strides);
}

int describe(const Key &k, Plan &p) {
    int status = set_tensor(&p.x, k, k.x);
    if (!status) status = set_tensor(&p.y, k, k.y);
    if (!status) status = dnn.filter_create(&p.w);
    if (!status) status = dnn.filter_set(p.w, k.type, FORMAT_NCHW, k.ndim, k.w);
    if (!status) status = dnn.convolution_create(&p.convolution);
    if (!status)
        status = dnn.convolution_set(p.convolution, k.ndim - 2, k.padding, k.stride, k.dilation,
                                     CROSS_CORRELATION,
                                     k.type == TYPE_DOUBLE ? TYPE_DOUBLE : TYPE_FLOAT);
    if (!status) status = dnn.convolution_groups(p.convolution, k.groups);
    return status ? status : dnn.convolution_math(p.convolution, k.math);
}

// Takes those of cuDNN's proposals (fastest first) that work, that are deterministic if this is
// asked for, and that need less room than a faster one. They share a descriptor, so all have the
// math of the first.
Shared made(void *handle, const Key &k) {
    const auto plan = std::make_shared<Plan>();
    Plan &p = *plan;
    DnnAlgorithm found[CHOICES];
    int count = 0, status = describe(k, p);
    if (!status) {
        if (k.kind == DNN_FORWARD)
            status =
                dnn.forward_choices(handle, p.x, p.w, p.convolution, p.y, CHOICES, &count, found);
        else if (k.kind == DNN_DATA)
            status = dnn.data_choices(handle, p.w, p.y, p.convolution, p.x, CHOICES, &count, found);
        else
            status =
                dnn.filter_choices(handle, p.x, p.y, p.convolution, p.w, CHOICES, &count, found);
    }
    int math = 0;
    for (int i = 0; !status && i < count; i++) {
        const DnnAlgorithm &of = found[i];
        if (of.status || (k.deterministic && of.determinism != DETERMINISTIC)) continue;
        if (p.choices.empty() ? dnn.convolution_math(p.convolution, of.math) != 0
                              : of.math != math || of.memory >= p.choices.back().room)
            continue;
        math = of.math;
        p.choices.push_back({of.algorithm, of.memory});
    }
    return plan;
}

Shared plan_for(void *handle, const Key &k) {
    const std::string bytes(reinterpret_cast<const char *>(&k), sizeof(k));
    std::lock_guard<std::mutex> guard(lock);
    const auto at = plans.find(bytes);
    if (at != plans.end()) return at->second;
    const Shared p = made(handle, k);
    if (plans.size() >= MOST_PLANS) plans.clear();      // a program with more sizes begins anew
    plans.emplace(bytes, p);
    return p;
}

}  // namespace

DnnHandle *dnn_handle(pt_call *c) {
    const int device = device_of(c);
    if (!is_there() || driver.set_device(device)) return nullptr;
    DnnHandle &h = handles.at(device);
    // Making a handle allocates memory and may wait, which a capture does not allow.
    if (!h.handle && (captures(c) || dnn.create(&h.handle))) return nullptr;
    if (!h.set || h.stream != c->stream) {
        h.set = !dnn.set_stream(h.handle, c->stream);
        h.stream = c->stream;
    }
    return h.set ? &h : nullptr;
}

int convolve_by_cudnn(pt_call *c, DnnKind kind) {
    const pt_view &out = c->out[0];
    const int dtype = out.dtype;
    if (!dnn_settings.enabled || !is_floating(dtype) || !out.contiguous) return DNN_DECLINES;
    const pt_view &x = kind == DNN_DATA ? out : c->in[0], &w = kind == DNN_FILTER ? out : c->in[1];
    const pt_view &y = kind == DNN_FORWARD ? out : kind == DNN_DATA ? c->in[0] : c->in[1];
    Key k = {};
    k.device = device_of(c), k.kind = kind, k.deterministic = dnn_settings.repeats();
    const bool half = item_size(dtype) == 2;
    k.type = dtype == PT_FLOAT16   ? TYPE_HALF
             : half                ? TYPE_BFLOAT16
             : dtype == PT_FLOAT32 ? TYPE_FLOAT
                                   : TYPE_DOUBLE;
    k.math = half ? TENSOR_OP_MATH : DEFAULT_MATH;
    if (dtype == PT_FLOAT32 && !blas_settings.convolution_tf32) k.math = FMA_MATH;
    if (c->params[3].i > INT32_MAX) return DNN_DECLINES;
    k.groups = (int)c->params[3].i;
    if (!read_sizes(x, k.x, k.ndim) || !read_sizes(w, k.w, k.ndim) || !read_sizes(y, k.y, k.ndim) ||
        !read_settings(c, k))
        return DNN_DECLINES;
    if (!x.numel || !w.numel || !y.numel) return DNN_DECLINES;

    DnnHandle *const h = dnn_handle(c);
    if (!h) return DNN_DECLINES;
    const Shared plan = plan_for(h->handle, k);
    const Plan &p = *plan;
    if (p.choices.empty()) return DNN_DECLINES;

    const Contiguous first(c, kind == DNN_DATA ? w : x), second(c, kind == DNN_FORWARD ? w : y);
    if (!first.ok() || !second.ok()) return PT_MEMORY_ERROR;
    size_t chosen = 0;
    std::unique_ptr<const Scratch> room;
    for (; chosen < p.choices.size(); chosen++) {       // the fastest whose workspace there is
        room.reset(new Scratch(c, (int64_t)p.choices[chosen].room));
        if (room->data || !p.choices[chosen].room) break;
    }
    if (chosen == p.choices.size()) return DNN_DECLINES;
    const int algorithm = p.choices[chosen].algorithm;
    const size_t nbytes = p.choices[chosen].room;
    const bool biased = kind != DNN_FILTER && c->in[2].dtype != PT_NONE;
    if (biased) {                               // the result begins as the bias
        View bias(out);
        bias.v.data = c->in[2].data;
        for (int d = 0; d < out.ndim; d++) bias.strides[d] = d == 1 ? c->in[2].strides[0] : 0;
        bias.settle();
        if (const int status = copy(c, &out, &bias.v)) return status;
    }
    const float scale[2] = {1, biased ? 1.f : 0.f};
    const double wide[2] = {1, biased ? 1. : 0.};
    const void *const alpha = dtype == PT_FLOAT64 ? static_cast<const void *>(wide) : scale;
    const void *const beta = dtype == PT_FLOAT64 ? static_cast<const void *>(wide + 1) : scale + 1;
    int status;
    if (kind == DNN_FORWARD)
        status = dnn.forward(h->handle, alpha, p.x, first.view.data, p.w, second.view.data,
                             p.convolution, algorithm, room->data, nbytes, beta, p.y, out.data);
    else if (kind == DNN_DATA)
        status = dnn.data(h->handle, alpha, p.w, first.view.data, p.y, second.view.data,
                          p.convolution, algorithm, room->data, nbytes, beta, p.x, out.data);
    else
        status = dnn.filter(h->handle, alpha, p.x, first.view.data, p.y, second.view.data,
                            p.convolution, algorithm, room->data, nbytes, beta, p.w, out.data);
    return status ? (int)DNN_DECLINES : wait_if_blocking(c, "convolution");
}

}  // namespace pt_cuda
