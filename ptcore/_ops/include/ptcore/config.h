/* One set of names for the features of compilers: inlining, restrict, loop hints and bit casts for
 * gcc, clang, MSVC and NVRTC. GNU constructs live here and in simd.h only.
 *
 * Everything that the C++ headers of this directory define is in an unnamed namespace:
 * a kernel file is compiled once per ISA level, and a function with external linkage
 * compiled at the highest level could be the copy that the linker keeps for the lowest.
 */
#ifndef PTCORE_CONFIG_H
#define PTCORE_CONFIG_H

#if defined(__CUDACC_RTC__)
typedef signed char int8_t;
typedef unsigned char uint8_t;
typedef short int16_t;
typedef unsigned short uint16_t;
typedef int int32_t;
typedef unsigned int uint32_t;
typedef long long int64_t;
typedef unsigned long long uint64_t;
#else
#include <math.h>
#include <stdint.h>
#include <string.h>
#endif

#define PT_CAT_(a, b) a##b
#define PT_CAT(a, b) PT_CAT_(a, b)

/* PT_INLINED is PT_INLINE for lambdas: it stands behind their arguments. */
#if defined(__CUDACC_RTC__)
#  define PT_HOST_DEVICE __host__ __device__
#  define PT_INLINE PT_HOST_DEVICE __forceinline__
#  define PT_INLINED
#  define PT_NOINLINE static __device__ __noinline__
#  define PT_RESTRICT __restrict__
#  define PT_IVDEP
#  define PT_UNLIKELY(c) (c)
#elif defined(_MSC_VER) && !defined(__clang__)
#  define PT_HOST_DEVICE
#  define PT_INLINE __forceinline
#  define PT_INLINED
#  define PT_NOINLINE static __declspec(noinline)
#  define PT_RESTRICT __restrict
#  define PT_IVDEP __pragma(loop(ivdep))
#  define PT_UNLIKELY(c) (c)
#else
#  define PT_HOST_DEVICE
#  define PT_INLINE inline __attribute__((always_inline))
#  define PT_INLINED __attribute__((always_inline))
#  define PT_NOINLINE __attribute__((noinline, unused)) static
#  define PT_RESTRICT __restrict__
#  if defined(__clang__)
#    define PT_IVDEP _Pragma("clang loop vectorize(assume_safety)")
#  else
#    define PT_IVDEP _Pragma("GCC ivdep")
#  endif
#  define PT_UNLIKELY(c) __builtin_expect(!!(c), 0)
#endif

/* Whether shorter code for some values of x is worth a test of x: where the compiler knows it, and
 * on CUDA, where a branch that all threads take alike costs next to nothing. */
#if defined(__CUDACC_RTC__)
#  define PT_KNOWN(x) true
#elif defined(__GNUC__) || defined(__clang__)
#  define PT_KNOWN(x) __builtin_constant_p(x)
#else
#  define PT_KNOWN(x) false
#endif

/* A fused multiply-add of doubles and of floats that is one instruction, for error terms. */
#if defined(__CUDACC_RTC__)
#  define PT_HAVE_FMA 1
#  define PT_FMA(a, b, c) fma(a, b, c)
#  define PT_FMAF(a, b, c) fmaf(a, b, c)
#elif defined(__FMA__) && (defined(__GNUC__) || defined(__clang__))
#  define PT_HAVE_FMA 1
#  define PT_FMA(a, b, c) __builtin_fma(a, b, c)
#  define PT_FMAF(a, b, c) __builtin_fmaf(a, b, c)
#else
#  define PT_HAVE_FMA 0
#endif

/* Constant tables are read on the host and on the device. */
#if defined(__CUDACC_RTC__)
#  define PT_TABLE __device__ const
#else
#  define PT_TABLE constexpr
#endif

#ifdef __cplusplus
namespace pt { namespace {

/* The bits of a float as its integer and back; the copy is folded to a register move. */
#if defined(__CUDACC_RTC__)
PT_INLINE uint32_t to_bits(float x) { return __float_as_uint(x); }
PT_INLINE uint64_t to_bits(double x) { return (uint64_t)__double_as_longlong(x); }
PT_INLINE float from_bits(uint32_t b) { return __uint_as_float(b); }
PT_INLINE double from_bits(uint64_t b) { return __longlong_as_double((long long)b); }
#else
PT_INLINE uint32_t to_bits(float x) { uint32_t b; memcpy(&b, &x, 4); return b; }
PT_INLINE uint64_t to_bits(double x) { uint64_t b; memcpy(&b, &x, 8); return b; }
PT_INLINE float from_bits(uint32_t b) { float x; memcpy(&x, &b, 4); return x; }
PT_INLINE double from_bits(uint64_t b) { double x; memcpy(&x, &b, 8); return x; }
#endif

}}  /* namespace pt, unnamed */
#endif
#endif
