// What CUDA builds in, for kernels that the host's compiler compiles: base.cuh includes this where
// NVRTC is not at work.
//
// It is short because every program includes it. Whatever needs machinery (barriers, exchanges
// within a warp, stops) is one call through `pt_host`, a table that the stand-in driver fills in
// when it loads the program: a program refers to no symbol of the driver. One kernel runs at a time
// in a process and all its threads take turns on one thread of the host, so that __shared__ is
// plain static memory and atomics are plain arithmetic. Between two meetings a thread is not
// interrupted; which thread goes on after a meeting is random (scheduler.cpp).
//
// Templates accept more types than CUDA's overloads do: NVRTC compiles the same text and is the
// judge of that.
#pragma once
#include <math.h>
#include <stdint.h>
#include <string.h>
#include "state.h"

#define PT_HOST_SHIM 1
#define __host__
#define __device__
#define __global__
#define __constant__ static
#define __forceinline__ inline
#define __noinline__ __attribute__((noinline))
#define __launch_bounds__(...)
#define __align__(n) alignas(n)
#define __shared__ static               // filled with junk at the start of every block

static pt_host_state *pt_host =
    (pt_host_state *)1;    // in .data: what lies in .bss is filled with junk
extern "C" __attribute__((visibility("default"), no_sanitize("thread"))) void pt_host_bind(
    pt_host_state *state) {
    pt_host = state;
}

#define threadIdx (pt_host->thread)
#define blockIdx (pt_host->block)
#define blockDim (pt_host->block_dim)
#define gridDim (pt_host->grid_dim)
#define warpSize 32

#define PT_SITE const char *file = __builtin_FILE(), int line = __builtin_LINE()

// Barriers of a block.
inline void __syncthreads(PT_SITE) { pt_host->meet(PT_MEET_BLOCK, 0, 0, 0, file, line); }
inline int __syncthreads_or(int x, PT_SITE) {
    return (int)pt_host->meet(PT_MEET_BLOCK_OR, 0, x != 0, 0, file, line);
}
inline int __syncthreads_and(int x, PT_SITE) {
    return (int)pt_host->meet(PT_MEET_BLOCK_AND, 0, x != 0, 0, file, line);
}
inline int __syncthreads_count(int x, PT_SITE) {
    return (int)pt_host->meet(PT_MEET_BLOCK_COUNT, 0, x != 0, 0, file, line);
}
[[noreturn]] inline void __trap(PT_SITE) {
    pt_host->stop(719, "__trap", file, line);
    __builtin_unreachable();
}
#ifdef assert
#  undef assert
#endif
#define assert(c) ((c) ? (void)0 : pt_host->stop(710, "assertion failed: " #c, __FILE__, __LINE__))

// Meetings of a warp.
inline void __syncwarp(unsigned mask = 0xffffffffu, PT_SITE) {
    pt_host->meet(PT_MEET_WARP, mask, 0, 0, file, line);
}
inline unsigned __activemask() { return pt_host->active(); }
inline unsigned __ballot_sync(unsigned mask, int x, PT_SITE) {
    return (unsigned)pt_host->meet(PT_MEET_BALLOT, mask, x != 0, 0, file, line);
}
inline int __any_sync(unsigned mask, int x, PT_SITE) {
    return (int)pt_host->meet(PT_MEET_ANY, mask, x != 0, 0, file, line);
}
inline int __all_sync(unsigned mask, int x, PT_SITE) {
    return (int)pt_host->meet(PT_MEET_ALL, mask, x != 0, 0, file, line);
}

template <class T> inline T pt_exchange(int what, unsigned mask, T x, int from, const char *file,
                                        int line) {
    static_assert(sizeof(T) <= 8,
                  "shuffle larger values with shuffle_xor and its like of base.cuh");
    uint64_t bits = 0;
    memcpy((void *)&bits, (const void *)&x, sizeof(T));
    bits = pt_host->meet(what, mask, bits, from, file, line);
    memcpy((void *)&x, (const void *)&bits, sizeof(T));
    return x;
}
template <class T> inline unsigned __match_any_sync(unsigned mask, T x, PT_SITE) {
    uint64_t bits = 0;
    memcpy(&bits, &x, sizeof(T));
    return (unsigned)pt_host->meet(PT_MEET_MATCH, mask, bits, 0, file, line);
}
// A lane outside of the segment of `width` lanes is replaced by one's own, as CUDA does.
template <class T> inline T __shfl_sync(unsigned mask, T x, int source, int width = 32, PT_SITE) {
    const int lane = (int)pt_host->lane;
    return pt_exchange(PT_MEET_SHUFFLE, mask, x, (lane & ~(width - 1)) | (source & (width - 1)),
                       file, line);
}
template <class T> inline T __shfl_up_sync(unsigned mask, T x, unsigned step, int width = 32,
                                           PT_SITE) {
    const int lane = (int)pt_host->lane, from = lane - (int)step;
    return pt_exchange(PT_MEET_SHUFFLE_UP, mask, x, from < (lane & ~(width - 1)) ? lane : from,
                       file, line);
}
template <class T> inline T __shfl_down_sync(unsigned mask, T x, unsigned step, int width = 32,
                                             PT_SITE) {
    const int lane = (int)pt_host->lane, from = lane + (int)step;
    return pt_exchange(PT_MEET_SHUFFLE_DOWN, mask, x, from > (lane | (width - 1)) ? lane : from,
                       file, line);
}
template <class T> inline T __shfl_xor_sync(unsigned mask, T x, int bits, int width = 32, PT_SITE) {
    const int lane = (int)pt_host->lane, from = lane ^ bits;
    return pt_exchange(PT_MEET_SHUFFLE_XOR, mask, x, from > (lane | (width - 1)) ? lane : from,
                       file, line);
}
#undef PT_SITE

// Atomics. The second parameter takes no part in deduction, so that literals convert.
template <class T> struct pt_same { typedef T type; };
#if PT_HOST_RACES
#  define PT_ATOMIC_FUNCTION __attribute__((noinline, no_sanitize("thread")))
#  define PT_NOTE_ATOMIC(p) \
    pt_host->access(p, sizeof(*p), PT_ATOMIC_ACCESS, __builtin_return_address(0))
#else
#  define PT_ATOMIC_FUNCTION inline
#  define PT_NOTE_ATOMIC(p) (void)0
#endif
#define PT_ATOMIC(name, result)                                                       \
    template <class T> PT_ATOMIC_FUNCTION T name(T *p, typename pt_same<T>::type x) { \
        PT_NOTE_ATOMIC(p);                                                            \
        T old = *p;                                                                   \
        *p = (result);                                                                \
        return old;                                                                   \
    }                                                                                 \
    template <class T> inline T name##_block(T *p, typename pt_same<T>::type x) {     \
        return name(p, x);                                                            \
    }                                                                                 \
    template <class T> inline T name##_system(T *p, typename pt_same<T>::type x) {    \
        return name(p, x);                                                            \
    }
PT_ATOMIC(atomicAdd, old + x)
PT_ATOMIC(atomicSub, old - x)
PT_ATOMIC(atomicMax, old < x ? x : old)
PT_ATOMIC(atomicMin, x < old ? x : old)
PT_ATOMIC(atomicAnd, old & x)
PT_ATOMIC(atomicOr, old | x)
PT_ATOMIC(atomicXor, old ^ x)
PT_ATOMIC(atomicExch, x)
PT_ATOMIC(atomicInc, old >= x ? 0 : old + 1)
PT_ATOMIC(atomicDec, old == 0 || old > x ? x : old - 1)
#undef PT_ATOMIC
template <class T>
PT_ATOMIC_FUNCTION T atomicCAS(T *p, typename pt_same<T>::type expected,
                               typename pt_same<T>::type x) {
    PT_NOTE_ATOMIC(p);
    T old = *p;
    if (old == expected) *p = x;
    return old;
}
template <class T> inline T atomicCAS_block(T *p, typename pt_same<T>::type e,
                                            typename pt_same<T>::type x) {
    return atomicCAS(p, e, x);
}
#if PT_HOST_RACES
inline void __threadfence() { pt_host->fence(); }
inline void __threadfence_system() { pt_host->fence(); }
#else
inline void __threadfence() {}
inline void __threadfence_system() {}
#endif
inline void __threadfence_block() {}
inline void __nanosleep(unsigned) {}

// Loads and stores with a hint for the caches.
#define PT_LOAD(name) template <class T> inline T name(const T *p) { return *p; }
PT_LOAD(__ldg)
PT_LOAD(__ldca)
PT_LOAD(__ldcg)
PT_LOAD(__ldcs)
PT_LOAD(__ldlu)
PT_LOAD(__ldcv)
#undef PT_LOAD
#define PT_STORE(name) \
    template <class T> inline void name(T *p, typename pt_same<T>::type x) { *p = x; }
PT_STORE(__stwb)
PT_STORE(__stcg)
PT_STORE(__stcs)
PT_STORE(__stwt)
#undef PT_STORE

// Bits.
inline int __popc(unsigned x) { return __builtin_popcount(x); }
inline int __popcll(unsigned long long x) { return __builtin_popcountll(x); }
inline int __ffs(int x) { return __builtin_ffs(x); }
inline int __ffsll(long long x) { return __builtin_ffsll(x); }
inline int __clz(int x) { return x ? __builtin_clz((unsigned)x) : 32; }
inline int __clzll(long long x) { return x ? __builtin_clzll((unsigned long long)x) : 64; }
inline unsigned __brev(unsigned x) {
    unsigned r = 0;
    for (int i = 0; i < 32; i++) r |= (x >> i & 1u) << (31 - i);
    return r;
}
inline unsigned __byte_perm(unsigned x, unsigned y, unsigned s) {
    const uint64_t both = (uint64_t)y << 32 | x;
    unsigned r = 0;
    for (int i = 0; i < 4; i++) r |= (unsigned)(both >> 8 * (s >> 4 * i & 7u) & 255u) << 8 * i;
    return r;
}
inline unsigned __umulhi(unsigned x, unsigned y) { return (unsigned)((uint64_t)x * y >> 32); }
inline int __mulhi(int x, int y) { return (int)((int64_t)x * y >> 32); }
inline unsigned long long __umul64hi(unsigned long long x, unsigned long long y) {
    return (unsigned long long)((unsigned __int128)x * y >> 64);
}
inline long long __mul64hi(long long x, long long y) { return (long long)((__int128)x * y >> 64); }
inline unsigned __funnelshift_l(unsigned low, unsigned high, unsigned n) {
    return (unsigned)((((uint64_t)high << 32 | low) << (n & 31u)) >> 32);
}
inline unsigned __funnelshift_r(unsigned low, unsigned high, unsigned n) {
    return (unsigned)(((uint64_t)high << 32 | low) >> (n & 31u));
}
template <class R, class T> inline R pt_bits_as(T x) {
    R r;
    memcpy(&r, &x, sizeof(R));
    return r;
}
inline int __float_as_int(float x) { return pt_bits_as<int>(x); }
inline unsigned __float_as_uint(float x) { return pt_bits_as<unsigned>(x); }
inline float __int_as_float(int x) { return pt_bits_as<float>(x); }
inline float __uint_as_float(unsigned x) { return pt_bits_as<float>(x); }
inline long long __double_as_longlong(double x) { return pt_bits_as<long long>(x); }
inline double __longlong_as_double(long long x) { return pt_bits_as<double>(x); }

// Arithmetic that CUDA adds to C's. Of the _rn forms nothing is fused with what follows, however
// the program is compiled.
template <class R> inline R pt_rounded(R x) {
    volatile R kept = x;
    return kept;
}
inline float __fadd_rn(float x, float y) { return pt_rounded(x + y); }
inline float __fsub_rn(float x, float y) { return pt_rounded(x - y); }
inline float __fmul_rn(float x, float y) { return pt_rounded(x * y); }
inline float __fdiv_rn(float x, float y) { return x / y; }
inline float __fsqrt_rn(float x) { return __builtin_sqrtf(x); }
inline float __fmaf_rn(float x, float y, float z) { return __builtin_fmaf(x, y, z); }
inline double __dadd_rn(double x, double y) { return pt_rounded(x + y); }
inline double __dsub_rn(double x, double y) { return pt_rounded(x - y); }
inline double __dmul_rn(double x, double y) { return pt_rounded(x * y); }
inline double __fma_rn(double x, double y, double z) { return __builtin_fma(x, y, z); }
inline float __fdividef(float x, float y) { return x / y; }
inline float __frcp_rn(float x) { return 1.0f / x; }
inline float __expf(float x) { return __builtin_expf(x); }
inline float __logf(float x) { return __builtin_logf(x); }
inline float __saturatef(float x) { return x > 0.0f ? x < 1.0f ? x : 1.0f : 0.0f; }
inline float rsqrtf(float x) { return 1.0f / __builtin_sqrtf(x); }
inline float rsqrt(float x) { return 1.0f / __builtin_sqrtf(x); }
inline double rsqrt(double x) { return 1.0 / __builtin_sqrt(x); }

#define PT_MIN_MAX(T) \
    inline T min(T x, T y) { return y < x ? y : x; } \
    inline T max(T x, T y) { return x < y ? y : x; }
PT_MIN_MAX(int)
PT_MIN_MAX(unsigned)
PT_MIN_MAX(long)
PT_MIN_MAX(unsigned long)
PT_MIN_MAX(long long)
PT_MIN_MAX(unsigned long long)
#undef PT_MIN_MAX
inline unsigned min(int x, unsigned y) { return min((unsigned)x, y); }
inline unsigned min(unsigned x, int y) { return min(x, (unsigned)y); }
inline unsigned max(int x, unsigned y) { return max((unsigned)x, y); }
inline unsigned max(unsigned x, int y) { return max(x, (unsigned)y); }
inline float min(float x, float y) { return __builtin_fminf(x, y); }
inline float max(float x, float y) { return __builtin_fmaxf(x, y); }
inline double min(double x, double y) { return __builtin_fmin(x, y); }
inline double max(double x, double y) { return __builtin_fmax(x, y); }

// CUDA's vectors, with its alignments.
#define PT_VECTORS(name, T, two, four) \
    struct alignas(two) name##2 { T x, y; }; \
    struct alignas(four) name##4 { T x, y, z, w; }; \
    inline name##2 make_##name##2(T x, T y) { return name##2{x, y}; } \
    inline name##4 make_##name##4(T x, T y, T z, T w) { return name##4{x, y, z, w}; }
PT_VECTORS(char, signed char, 2, 4)
PT_VECTORS(uchar, unsigned char, 2, 4)
PT_VECTORS(short, short, 4, 8)
PT_VECTORS(ushort, unsigned short, 4, 8)
PT_VECTORS(int, int, 8, 16)
PT_VECTORS(uint, unsigned, 8, 16)
PT_VECTORS(longlong, long long, 16, 16)
PT_VECTORS(ulonglong, unsigned long long, 16, 16)
PT_VECTORS(float, float, 8, 16)
PT_VECTORS(double, double, 16, 16)
#undef PT_VECTORS

extern "C" int printf(const char *format, ...);

#if PT_HOST_RACES
// What -fsanitize=thread makes of accesses to memory; the driver's races.cpp takes the place of the
// sanitizer's library.
#define PT_TSAN \
    extern "C" __attribute__((visibility("hidden"), used, noinline, no_sanitize("thread"))) void
#define PT_TSAN_ACCESS(name, kind, bytes) \
    PT_TSAN name(void *p) { pt_host->access(p, bytes, kind, __builtin_return_address(0)); }
#define PT_TSAN_SIZE(n) \
    PT_TSAN_ACCESS(__tsan_read##n, PT_READ, n) \
    PT_TSAN_ACCESS(__tsan_write##n, PT_WRITE, n) \
    PT_TSAN_ACCESS(__tsan_volatile_read##n, PT_ATOMIC_ACCESS, n) \
    PT_TSAN_ACCESS(__tsan_volatile_write##n, PT_ATOMIC_ACCESS, n) \
    PT_TSAN_ACCESS(__tsan_unaligned_volatile_read##n, PT_READ, n) \
    PT_TSAN_ACCESS(__tsan_unaligned_volatile_write##n, PT_WRITE, n) \
    PT_TSAN_ACCESS(__tsan_unaligned_read##n, PT_READ, n) \
    PT_TSAN_ACCESS(__tsan_unaligned_write##n, PT_WRITE, n)
PT_TSAN_SIZE(1)
PT_TSAN_SIZE(2)
PT_TSAN_SIZE(4)
PT_TSAN_SIZE(8)
PT_TSAN_SIZE(16)
PT_TSAN __tsan_read_range(void *p, uint64_t n) {
    pt_host->access(p, n, PT_READ, __builtin_return_address(0));
}
PT_TSAN __tsan_write_range(void *p, uint64_t n) {
    pt_host->access(p, n, PT_WRITE, __builtin_return_address(0));
}
PT_TSAN __tsan_func_entry(void *) {}
PT_TSAN __tsan_func_exit() {}
PT_TSAN __tsan_init() {}
extern "C" __attribute__((visibility("default"))) int pt_host_races() { return 1; }
#endif
