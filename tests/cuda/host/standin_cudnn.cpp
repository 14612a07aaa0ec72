// A stand-in for libcudnn: convolution and its gradients by their definition, in double, queued on
// the stand-in driver's streams.
//
// What cuDNN demands is asked for: descriptors that are set, of one dtype and sizes that fit, a
// stream, a workspace of the size that was told, the algorithm that was proposed with the math that
// was proposed with it.
#include "standin_cudnn.hpp"

using namespace standin_cudnn;

namespace {

struct Tensor { int type = -1, ndim = 0, sizes[5] = {}; };
struct Convolution {
    int ndim = 0, padding[3] = {}, stride[3] = {}, dilation[3] = {}, compute = -1, groups = 1,
        math = -1;
};
struct Algorithm {
    int algorithm, status;
    float time;
    size_t memory;
    int determinism, math, reserved[3];
};

size_t largest = 2 * WORKSPACE;         // the room that the fastest algorithm asks for
int algorithm_used;

// Of a convolution, whichever of its three tensors is the result.
struct Work {
    Tensor x, w, y;
    Convolution c;
    const void *x_data, *w_data, *y_data;
    void *out, *room;
    double alpha, beta;
    int which;                          // 0: y, 1: x, 2: w
};

void run(const Work &q) {
    const int spatial = q.x.ndim - 2, type = q.x.type;
    std::memset(q.room, 0xff, WORKSPACE);
    const Tensor &of = q.which == 0 ? q.y : q.which == 1 ? q.x : q.w;
    int64_t total = 1, taps = 1, places = 1;
    for (int d = 0; d < of.ndim; d++) total *= of.sizes[d];
    for (int d = 0; d < spatial; d++) taps *= q.w.sizes[d + 2], places *= q.y.sizes[d + 2];
    std::vector<double> sum((size_t)total, 0.0);
    const int channels = q.w.sizes[1], filters = q.y.sizes[1] / q.c.groups;
    for (int n = 0; n < q.x.sizes[0]; n++)
        for (int f = 0; f < q.y.sizes[1]; f++)
            for (int k = 0; k < channels; k++)
                for (int64_t place = 0; place < places; place++)
                    for (int64_t tap = 0; tap < taps; tap++) {
                        int64_t rest_p = place, rest_t = tap, at = 0, step = 1;
                        bool inside = true;
                        for (int d = spatial - 1; d >= 0; d--) {
                            const int64_t p = rest_p % q.y.sizes[d + 2],
                                          t = rest_t % q.w.sizes[d + 2];
                            rest_p /= q.y.sizes[d + 2], rest_t /= q.w.sizes[d + 2];
                            const int64_t i =
                                p * q.c.stride[d] - q.c.padding[d] + t * q.c.dilation[d];
                            inside = inside && i >= 0 && i < q.x.sizes[d + 2];
                            at += i * step, step *= q.x.sizes[d + 2];
                        }
                        if (!inside) continue;
                        const int64_t x =
                            ((int64_t)n * q.x.sizes[1] + f / filters * channels + k) * step + at;
                        const int64_t w = ((int64_t)f * channels + k) * taps + tap,
                                      y = ((int64_t)n * q.y.sizes[1] + f) * places + place;
                        if (q.which == 0)
                            sum[(size_t)y] += get(q.x_data, x, type) * get(q.w_data, w, type);
                        else if (q.which == 1)
                            sum[(size_t)x] += get(q.y_data, y, type) * get(q.w_data, w, type);
                        else sum[(size_t)w] += get(q.x_data, x, type) * get(q.y_data, y, type);
                    }
    for (int64_t i = 0; i < total; i++)
        put(q.out, i, type,
            q.alpha * sum[(size_t)i] + (q.beta != 0 ? q.beta * get(q.out, i, type) : 0));
}

bool fits(const Tensor &x, const Tensor &w, const Tensor &y, const Convolution &c) {
    if (x.type < 0 || x.type != w.type || x.type != y.type || x.ndim < 4 || x.ndim != w.ndim ||
        x.ndim != y.ndim)
        return false;
    if (c.ndim != x.ndim - 2 || c.compute != (x.type == DOUBLE ? DOUBLE : FLOAT) || c.math < 0)
        return false;
    if (x.sizes[0] != y.sizes[0] || y.sizes[1] != w.sizes[0] || w.sizes[0] % c.groups ||
        x.sizes[1] != w.sizes[1] * c.groups)
        return false;
    for (int d = 0; d < c.ndim; d++) {
        const int64_t reach = (int64_t)x.sizes[d + 2] + 2 * c.padding[d] -
                              (int64_t)c.dilation[d] * (w.sizes[d + 2] - 1) - 1;
        if (reach < 0 || reach / c.stride[d] + 1 != y.sizes[d + 2]) return false;
    }
    return true;
}

int queue(void *handle, const void *alpha, const void *beta, int algorithm, void *room,
          size_t nbytes, const Convolution *c, Work q) {
    Handle *h = (Handle *)handle;
    const bool fast = algorithm == q.which + 1;
    if (!h || !h->set || !alpha || !beta || !fits(q.x, q.w, q.y, *c) ||
        (!fast && algorithm != q.which + 4))
        return BAD_PARAM;
    if (!room || nbytes != (fast ? largest : WORKSPACE) ||
        c->math != (q.x.type == HALF || q.x.type == BFLOAT16))
        return BAD_PARAM;
    q.c = *c, q.room = room;
    q.alpha = q.x.type == DOUBLE ? *(const double *)alpha : *(const float *)alpha;
    q.beta = q.x.type == DOUBLE ? *(const double *)beta : *(const float *)beta;
    launched++, algorithm_used = algorithm;
    return queued<Work, run>(*h, q);
}

int choose(const Tensor *x, const Tensor *w, const Tensor *y, const Convolution *c, int which,
           int wanted, int *found, Algorithm *out) {
    if (!found || wanted < 3 || !fits(*x, *w, *y, *c)) return BAD_PARAM;
    choices++;
    *found = declines ? 1 : 4;
    const int tensors = x->type == HALF || x->type == BFLOAT16;
    out[0] = {0, NOT_SUPPORTED, -1, 0, 1, 0, {}};
    out[1] = {which + 1, SUCCESS, 1, largest,
              0,         tensors, {}};        // the fastest, and not deterministic
    out[2] = {which + 4, SUCCESS, 2, WORKSPACE, 0, tensors, {}};
    out[3] = {which + 4, SUCCESS, 3, WORKSPACE, 1, tensors, {}};
    return SUCCESS;
}

}  // namespace

namespace standin_cudnn {
int launched, choices;
bool declines;
}  // namespace standin_cudnn
namespace {
size_t version = 92800;
}

API void standin_cudnn_version(int to) { version = (size_t)to; }
API int standin_cudnn_launched() { return launched; }
API int standin_cudnn_choices() { return choices; }
API void standin_cudnn_decline(int on) { declines = on != 0; }
API size_t cudnnGetVersion() { return version; }
API int cudnnCreate(void **handle) {
    if (refused(WAITS)) return FAILED;
    return *handle = new Handle, SUCCESS;
}
API void standin_cudnn_room(size_t nbytes) { largest = nbytes; }
API int standin_cudnn_algorithm() { return algorithm_used; }
API int cudnnSetStream(void *handle, void *stream) {
    ((Handle *)handle)->stream = stream, ((Handle *)handle)->set = true;
    return SUCCESS;
}
API int cudnnCreateTensorDescriptor(void **t) { return *t = new Tensor, SUCCESS; }
API int cudnnDestroyTensorDescriptor(void *t) { return delete (Tensor *)t, SUCCESS; }
API int cudnnSetTensorNdDescriptor(void *t, int type, int ndim, const int *sizes,
                                   const int *strides) {
    if (ndim < 4 || ndim > 5) return BAD_PARAM;
    int step = 1;
    for (int d = ndim - 1; d >= 0; d--) {
        if (sizes[d] < 1) return BAD_PARAM;
        if (strides[d] != step) return NOT_SUPPORTED;       // here
        step *= sizes[d];
        ((Tensor *)t)->sizes[d] = sizes[d];
    }
    ((Tensor *)t)->type = type, ((Tensor *)t)->ndim = ndim;
    return SUCCESS;
}
API int cudnnCreateFilterDescriptor(void **f) { return *f = new Tensor, SUCCESS; }
API int cudnnDestroyFilterDescriptor(void *f) { return delete (Tensor *)f, SUCCESS; }
API int cudnnSetFilterNdDescriptor(void *f, int type, int format, int ndim, const int *sizes) {
    if (ndim < 4 || ndim > 5 || format != 0) return BAD_PARAM;
    for (int d = 0; d < ndim; d++) ((Tensor *)f)->sizes[d] = sizes[d];
    ((Tensor *)f)->type = type, ((Tensor *)f)->ndim = ndim;
    return SUCCESS;
}
API int cudnnCreateConvolutionDescriptor(void **c) { return *c = new Convolution, SUCCESS; }
API int cudnnDestroyConvolutionDescriptor(void *c) { return delete (Convolution *)c, SUCCESS; }
API int cudnnSetConvolutionNdDescriptor(void *p, int ndim, const int *padding, const int *stride,
                                        const int *dilation, int mode, int compute) {
    Convolution *c = (Convolution *)p;
    if (ndim < 2 || ndim > 3 || mode != 1) return BAD_PARAM;
    for (int d = 0; d < ndim; d++) {
        if (padding[d] < 0 || stride[d] < 1 || dilation[d] < 1) return BAD_PARAM;
        c->padding[d] = padding[d], c->stride[d] = stride[d], c->dilation[d] = dilation[d];
    }
    c->ndim = ndim, c->compute = compute;
    return SUCCESS;
}
API int cudnnSetConvolutionGroupCount(void *c, int groups) {
    return ((Convolution *)c)->groups = groups, SUCCESS;
}
API int cudnnSetConvolutionMathType(void *c, int math) {
    return ((Convolution *)c)->math = math, SUCCESS;
}
API int cudnnGetConvolutionForwardAlgorithm_v7(void *, void *x, void *w, void *c, void *y,
                                               int wanted, int *found, Algorithm *out) {
    return choose((Tensor *)x, (Tensor *)w, (Tensor *)y, (Convolution *)c, 0, wanted, found, out);
}
API int cudnnGetConvolutionBackwardDataAlgorithm_v7(void *, void *w, void *y, void *c, void *x,
                                                    int wanted, int *found, Algorithm *out) {
    return choose((Tensor *)x, (Tensor *)w, (Tensor *)y, (Convolution *)c, 1, wanted, found, out);
}
API int cudnnGetConvolutionBackwardFilterAlgorithm_v7(void *, void *x, void *y, void *c, void *w,
                                                      int wanted, int *found, Algorithm *out) {
    return choose((Tensor *)x, (Tensor *)w, (Tensor *)y, (Convolution *)c, 2, wanted, found, out);
}
API int cudnnConvolutionForward(void *h, const void *alpha, void *x, const void *x_data, void *w,
                                const void *w_data, void *c, int algorithm, void *room,
                                size_t nbytes, const void *beta, void *y, void *y_data) {
    return queue(h, alpha, beta, algorithm, room, nbytes, (Convolution *)c,
                 {*(Tensor *)x,
                  *(Tensor *)w,
                  *(Tensor *)y,
                  {},
                  x_data,
                  w_data,
                  nullptr,
                  y_data,
                  nullptr,
                  0,
                  0,
                  0});
}
API int cudnnConvolutionBackwardData(void *h, const void *alpha, void *w, const void *w_data,
                                     void *y, const void *y_data, void *c, int algorithm,
                                     void *room, size_t nbytes, const void *beta, void *x,
                                     void *x_data) {
    return queue(h, alpha, beta, algorithm, room, nbytes, (Convolution *)c,
                 {*(Tensor *)x,
                  *(Tensor *)w,
                  *(Tensor *)y,
                  {},
                  nullptr,
                  w_data,
                  y_data,
                  x_data,
                  nullptr,
                  0,
                  0,
                  1});
}
API int cudnnConvolutionBackwardFilter(void *h, const void *alpha, void *x, const void *x_data,
                                       void *y, const void *y_data, void *c, int algorithm,
                                       void *room, size_t nbytes, const void *beta, void *w,
                                       void *w_data) {
    return queue(h, alpha, beta, algorithm, room, nbytes, (Convolution *)c,
                 {*(Tensor *)x,
                  *(Tensor *)w,
                  *(Tensor *)y,
                  {},
                  x_data,
                  nullptr,
                  y_data,
                  w_data,
                  nullptr,
                  0,
                  0,
                  2});
}
