/* Chains of arithmetic (chain.h), eight vectors at a time. */
#include "chain.h"
#include "ptcore/kernel.h"
#include "ptcore/scalar.h"
#include "ptcore/simd.h"

namespace pt { namespace {

#if PT_GNU_VECTORS

/* The N vectors of a block. PT_EACH is unrolled over them, so that they stay in registers. */
template<class T, int N> struct block {
    using V = typename simd<T>::vector;
    static constexpr int width = simd<T>::width;
    V a[N] = {};

    static V splat(T x) { return V{} + x; }
    static V magnitude(V v) {
        typename std::conditional<sizeof(T) == 4, int32_t, int64_t>::type mask =
            ~(decltype(mask)(1) << (8 * sizeof(T) - 1));
        typedef decltype(mask) bits __attribute__((vector_size(PT_VECTOR_BYTES)));
        return (V)((bits)v & (bits{} + mask));
    }
#define PT_EACH(expression) \
    do { \
        _Pragma("GCC unroll 8") \
        for (int j = 0; j < N; ++j) { expression; } \
        return; \
    } while (0)
#define PT_BINARY(name, expression)                                                         \
case PT_CHAIN_##name: PT_EACH(const V m = simd<T>::load(p + j * width); a[j] = expression); \
case PT_CHAIN_##name + PT_CHAIN_NUMBER: {                                                   \
    const V m = splat(*number);                                                             \
    PT_EACH(a[j] = expression);                                                             \
}

    PT_INLINE void step(int op, T *p, const T *number) {
        const V zero = {};
        switch (op) {
        case PT_CHAIN_LOAD: PT_EACH(a[j] = simd<T>::load(p + j * width));
        case PT_CHAIN_STORE: PT_EACH(simd<T>::store(p + j * width, a[j]));
        case PT_CHAIN_NEG: PT_EACH(a[j] = -a[j]);
        case PT_CHAIN_ABS: PT_EACH(a[j] = magnitude(a[j]));
        case PT_CHAIN_RELU: PT_EACH(a[j] = a[j] < zero ? zero : a[j]);
        case PT_CHAIN_SQUARE: PT_EACH(a[j] = a[j] * a[j]);
        case PT_CHAIN_DOUBLE: PT_EACH(a[j] = a[j] + a[j]);
        PT_BINARY(ADD, a[j] + m)
        PT_BINARY(SUB, a[j] - m)
        PT_BINARY(RSUB, m - a[j])
        PT_BINARY(MUL, a[j] * m)
        PT_BINARY(DIV, a[j] / m)
        PT_BINARY(RDIV, m / a[j])
        }
    }
#undef PT_BINARY
#undef PT_EACH
};

template<class T> T one(int op, T a, T *p, const T *number) {
    const T m = op >= PT_CHAIN_NUMBER                       ? *number
                : op == PT_CHAIN_STORE || op < PT_CHAIN_ADD ? T(0)
                                                            : *p;
    switch (op & (PT_CHAIN_NUMBER - 1)) {
    case PT_CHAIN_LOAD: return *p;
    case PT_CHAIN_STORE: *p = a; return a;
    case PT_CHAIN_NEG: return -a;
    case PT_CHAIN_ABS: return pt::abs(a);
    case PT_CHAIN_RELU: return relu(a);
    case PT_CHAIN_SQUARE: return a * a;
    case PT_CHAIN_DOUBLE: return a + a;
    case PT_CHAIN_ADD: return a + m;
    case PT_CHAIN_SUB: return a - m;
    case PT_CHAIN_RSUB: return m - a;
    case PT_CHAIN_MUL: return a * m;
    case PT_CHAIN_DIV: return a / m;
    default: return m / a;
    }
}

template <class T, int N> int64_t blocks(const uint8_t *ops, char *const *operands,
                                         const T *numbers, int n, int64_t i, int64_t count) {
    constexpr int64_t size = N * simd<T>::width;
    for (; i + size <= count; i += size) {
        block<T, N> b;
        for (int k = 0; k < n; ++k) {
            T *p = reinterpret_cast<T *>(operands[k]);
            b.step(ops[k], p + i, numbers + k);
        }
    }
    return i;
}

template<class T> void run(const uint8_t *ops, char *const *operands, int n, int64_t count) {
    T numbers[PT_CHAIN_MOST];           /* a copy: a store may overwrite the memory of a number */
    for (int k = 0; k < n; ++k)
        if (ops[k] >= PT_CHAIN_NUMBER) memcpy(&numbers[k], operands[k], sizeof(T));
    int64_t i = blocks<T, 8>(ops, operands, numbers, n, 0, count);
    i = blocks<T, 1>(ops, operands, numbers, n, i, count);
    for (; i < count; ++i) {
        T a = 0;
        for (int k = 0; k < n; ++k) {
            T *p = reinterpret_cast<T *>(operands[k]);
            a = one(ops[k], a, p + i, numbers + k);
        }
    }
}
#else
template<class T> constexpr pt_chain run = nullptr;
#endif

}}  /* namespace pt, unnamed */

extern "C" {
extern const pt_chain_table PT_CAT(pt_chains_, PT_ISA);
const pt_chain_table PT_CAT(pt_chains_, PT_ISA) = {pt::run<float>, pt::run<double>};

extern const pt_kernel_entry PT_CAT(pt_kernels_chain_, PT_ISA)[];
const pt_kernel_entry PT_CAT(pt_kernels_chain_, PT_ISA)[] = {{nullptr, nullptr}};
}
