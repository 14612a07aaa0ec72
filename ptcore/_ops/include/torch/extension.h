/* PyTorch's C++ names for extensions that work on the CPU with tensors and
 * accessors: `torch::` is `pt::`. */
#ifndef PTCORE_TORCH_EXTENSION_H
#define PTCORE_TORCH_EXTENSION_H
#include "../ptcore/extension.h"

namespace pt {

/* A number that is an int or a float, as ops take it. */
class Scalar {
    double d;
    int64_t i;
    bool integral;

public:
    template <class T, class = std::enable_if_t<std::is_arithmetic_v<T>>>
    Scalar(T x)
        : d(double(x)), i(std::is_integral_v<T> ? int64_t(x) : 0), integral(std::is_integral_v<T>) {
    }
    bool isIntegral(bool = false) const { return integral; }
    double toDouble() const { return d; }
    int64_t toLong() const { return integral ? i : int64_t(d); }
    template<class T> T to() const { return integral ? T(i) : T(d); }
};
template<> struct convert<Scalar> {
    static std::string name() { return "a number"; }
    static Scalar from(PyObject *x) {
        if (PyLong_Check(x)) return convert<int64_t>::from(x);
        return convert<double>::from(x);
    }
    static PyObject *to(const Scalar &x) {
        return x.isIntegral() ? to_python(x.toLong()) : to_python(x.toDouble());
    }
};
#define PT_SCALAR(symbol)                                                    \
    inline Tensor operator symbol(const Tensor &a, const Scalar &b) {        \
        return b.isIntegral() ? a symbol b.toLong() : a symbol b.toDouble(); \
    }                                                                        \
    inline Tensor operator symbol(const Scalar &a, const Tensor &b) {        \
        return a.isIntegral() ? a.toLong() symbol b : a.toDouble() symbol b; \
    }
PT_SCALAR(+)
PT_SCALAR(-)
PT_SCALAR(*)
PT_SCALAR(/)
#undef PT_SCALAR

using ScalarType = int;
constexpr int kBool = PT_BOOL, kByte = PT_UINT8, kUInt8 = PT_UINT8, kChar = PT_INT8,
              kInt8 = PT_INT8, kShort = PT_INT16, kInt16 = PT_INT16, kInt = PT_INT32,
              kInt32 = PT_INT32, kLong = PT_INT64, kInt64 = PT_INT64, kHalf = PT_FLOAT16,
              kFloat16 = PT_FLOAT16, kBFloat16 = PT_BFLOAT16, kFloat = PT_FLOAT32,
              kFloat32 = PT_FLOAT32, kDouble = PT_FLOAT64, kFloat64 = PT_FLOAT64,
              kComplexHalf = PT_COMPLEX32, kComplexFloat = PT_COMPLEX64,
              kComplexDouble = PT_COMPLEX128, kFloat8_e4m3fn = PT_FLOAT8_E4M3FN,
              kFloat8_e5m2 = PT_FLOAT8_E5M2, kFloat8_e4m3fnuz = PT_FLOAT8_E4M3FNUZ,
              kFloat8_e5m2fnuz = PT_FLOAT8_E5M2FNUZ, kFloat8_e8m0fnu = PT_FLOAT8_E8M0FNU;

/* Functions with the same arguments and results as in Python:
 * torch::sigmoid(x), torch::where(c, x, y). */
#define PT_FUNCTION(name)                                                  \
    template <class... A> Tensor name(const Tensor &x, const A &...args) { \
        return call(#name, x, args...);                                    \
    }
#define PT_FUNCTIONS(each)                                                                       \
    each(abs) each(add) each(addmm) each(argmax) each(bmm) each(clamp) each(cos) each(cumsum)    \
        each(div) each(einsum) each(erf) each(exp) each(floor) each(full_like) each(gather)      \
            each(index_select) each(log) each(log_softmax) each(masked_fill) each(matmul)        \
                each(maximum) each(mean) each(minimum) each(mm) each(mul) each(norm) each(pow)   \
                    each(rand_like) each(randn_like) each(relu) each(round) each(rsqrt)          \
                        each(sigmoid) each(sin) each(softmax) each(sqrt) each(squeeze) each(sub) \
                            each(sum) each(tanh) each(transpose) each(tril) each(triu)           \
                                each(unsqueeze) each(where)
PT_FUNCTIONS(PT_FUNCTION)
#undef PT_FUNCTIONS
#undef PT_FUNCTION
inline Tensor cat(const std::vector<Tensor> &x, int64_t dim = 0) { return call("cat", x, dim); }
inline Tensor stack(const std::vector<Tensor> &x, int64_t dim = 0) { return call("stack", x, dim); }
inline Tensor elu(const Tensor &x, Scalar alpha = 1.0) {
    return call("nn.functional.elu", x, alpha);
}
inline Tensor gelu(const Tensor &x) { return call("nn.functional.gelu", x); }
inline Tensor linear(const Tensor &x, const Tensor &weight,
                     const std::optional<Tensor> &bias = std::nullopt) {
    return call("nn.functional.linear", x, weight, bias);
}

}  /* namespace pt */

namespace torch = pt;
namespace at = pt;
namespace c10 {
template<class T> using optional = std::optional<T>;
}

#define PYBIND11_MODULE(name, variable) PT_MODULE(name, variable)
#define TORCH_CHECK(...) PT_CHECK(__VA_ARGS__)
#define AT_DISPATCH_FLOATING_TYPES(code, name, ...) PT_DISPATCH_FLOATING(code, name, __VA_ARGS__)
#endif
