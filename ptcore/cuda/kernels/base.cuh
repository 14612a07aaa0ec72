// The beginning of every CUDA kernel file: types by name, the declaration of kernels, indices,
// warps and blocks.
//
// Kernels are header-free CUDA C++ for NVRTC; the tests compile the same text as host C++, where
// shim.h defines the names that CUDA builds in. Both compilations rest on these rules:
// (a) A kernel takes one struct by value, of at most 4000 bytes, whose layout the host half shares
//     (launch/NAME_args.h). It stays where the launch put it (__grid_constant__), so that
//     functions that are not inlined may take a reference to it.
// (b) PT_KERNEL declares a kernel whose threads never wait for each other, PT_KERNEL_SYNC one with
//     barriers or shuffles, PT_KERNEL_SYNC_BLOCKS one of which a multiprocessor holds more blocks.
// (c) A block has the number of threads that the declaration names; the host half chooses the grid.
// (d) __shared__ and the built-in variables have CUDA's own names; a warp has 32 threads.
// (e) PT_DYNAMIC_SHARED(T, name) is shared memory whose size the launch names; a kernel declares it
//     at most once.
// (f) PT_UNROLL stands before a loop over values that have to stay in registers: without PT_UNROLL
//     the compiler may put an array into memory.
// (g) Every thread of a block reaches each barrier, and every lane of a mask each shuffle or vote
//     of its warp: no thread returns before.
#pragma once
#include "ptcore/config.h"
#include "ptcore/convert.h"
#include "ptcore/scalar.h"
#include "ptcore/scalar_int.h"

#if defined(__CUDACC_RTC__)
#  define PT_DEVICE static __device__ __forceinline__
#  define PT_DEVICE_MEMBER __device__ __forceinline__
#  define PT_KERNEL(name, ARGS, a, threads) \
    extern "C" __global__ void __launch_bounds__(threads) name(const __grid_constant__ ARGS a)
#  define PT_KERNEL_SYNC PT_KERNEL
#  define PT_KERNEL_SYNC_BLOCKS(name, ARGS, a, threads, blocks)   \
    extern "C" __global__ void __launch_bounds__(threads, blocks) \
        name(const __grid_constant__ ARGS a)
#  define PT_PRAGMA(x) _Pragma(#x)
#  define PT_UNROLL PT_PRAGMA(unroll)
#  define PT_UNROLL_BY(n) PT_PRAGMA(unroll n)
#  define PT_DYNAMIC_SHARED(T, name) \
    extern __shared__ __align__(512) unsigned char pt_dynamic_shared[]; \
    T *const name = reinterpret_cast<T *>(pt_dynamic_shared)
#else
#  include "shim.h"
#  define PT_UNROLL
#  define PT_UNROLL_BY(n)
#  define PT_DEVICE static inline
#  define PT_DEVICE_MEMBER inline
#  define PT_EXPORT extern "C" __attribute__((visibility("default")))
#  define PT_DECLARE_KERNEL(name, ARGS, a, threads, barriers) \
    static void name##_body(const ARGS &a); \
    PT_EXPORT int name##_threads() { return threads; } \
    PT_EXPORT int name##_barriers() { return barriers; } \
    PT_EXPORT int name##_size() { return sizeof(ARGS); } \
    PT_EXPORT void name(const void *p) { name##_body(*static_cast<const ARGS *>(p)); } \
    static void name##_body(const ARGS &a)
#  define PT_KERNEL(name, ARGS, a, threads) PT_DECLARE_KERNEL(name, ARGS, a, threads, 0)
#  define PT_KERNEL_SYNC(name, ARGS, a, threads) PT_DECLARE_KERNEL(name, ARGS, a, threads, 1)
#  define PT_KERNEL_SYNC_BLOCKS(name, ARGS, a, threads, blocks) \
    PT_KERNEL_SYNC(name, ARGS, a, threads)
#  define PT_DYNAMIC_SHARED(T, name) T *const name = reinterpret_cast<T *>(pt_host->dynamic)
#endif

using pt::half;
using pt::bfloat16;
using pt::complex64;
using pt::complex128;

namespace {

// The type in which elements of T are computed, and the conversions to and from that type.
template <class T> struct opmath { typedef T type; };
template <> struct opmath<half> { typedef float type; };
template <> struct opmath<bfloat16> { typedef float type; };

template <class T> PT_DEVICE T up(T x) { return x; }
#if defined(__CUDACC_RTC__)
// One instruction where half.h needs a dozen. Results agree but for the payload and the sign of a
// NaN that is narrowed.
PT_DEVICE float up(half x) {
    float r;
    asm("cvt.f32.f16 %0, %1;" : "=f"(r) : "h"(x.bits));
    return r;
}
PT_DEVICE half narrow_half(float x) {
    half r;
    asm("cvt.rn.f16.f32 %0, %1;" : "=h"(r.bits) : "f"(x));
    return r;
}
#  if __CUDA_ARCH__ >= 800
PT_DEVICE bfloat16 narrow_bfloat16(float x) {
    bfloat16 r;
    asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(r.bits) : "f"(x));
    return r;
}
#  else
PT_DEVICE bfloat16 narrow_bfloat16(float x) { return pt::to_bfloat16(x); }
#  endif
#else
PT_DEVICE float up(half x) { return pt::to_float(x); }
PT_DEVICE half narrow_half(float x) { return pt::to_half(x); }
PT_DEVICE bfloat16 narrow_bfloat16(float x) { return pt::to_bfloat16(x); }
#endif
PT_DEVICE float up(bfloat16 x) { return pt::to_float(x); }

template <class T> struct down_to {
    template <class C> static PT_DEVICE_MEMBER T from(C x) { return static_cast<T>(x); }
};
template <> struct down_to<half> {
    static PT_DEVICE_MEMBER half from(float x) { return narrow_half(x); }
};
template <> struct down_to<bfloat16> {
    static PT_DEVICE_MEMBER bfloat16 from(float x) { return narrow_bfloat16(x); }
};
template <class T, class C> PT_DEVICE T down(C x) { return down_to<T>::from(x); }

// The type by which memory of T is converted: a byte of bool memory may have any value.
template <class T> struct raw { typedef T type; };
template <> struct raw<bool> { typedef pt::boolean type; };

// A byte of bool memory may have any value; as a bool only 0 and 1 may be read.
template <class T> PT_DEVICE T load(const T *p, int64_t i) { return p[i]; }
PT_DEVICE bool load(const bool *p, int64_t i) {
    return reinterpret_cast<const uint8_t *>(p)[i] != 0;
}

// A store to an element that other threads may store to at the same time: one thread's value stays.
// Where the tests check for races, any other store of this kind is a failure.
#if defined(PT_HOST_RACES)
template <class T> __attribute__((noinline, no_sanitize("thread"))) void store_any(T *p, T x) {
    pt_host->access(p, sizeof(T), PT_ATOMIC_ACCESS, __builtin_return_address(0));
    *p = x;
}
#else
template <class T> PT_DEVICE void store_any(T *p, T x) { *p = x; }
#endif

PT_DEVICE int64_t thread_index() { return (int64_t)blockIdx.x * blockDim.x + threadIdx.x; }
PT_DEVICE int64_t thread_count() { return (int64_t)gridDim.x * blockDim.x; }

// The loop of a grid's threads over n elements. It stays rolled: an unrolled loop would begin with
// a division of 64 bits, for the number of rounds, which takes longer than a round does.
#define PT_GRID_STRIDE(i, n) \
    PT_UNROLL_BY(1) for (int64_t i = thread_index(); i < (n); i += thread_count())

// Values of any trivially copyable type from another lane, word by word; all lanes of the warp
// call.
#define PT_SHUFFLE(name, CALL, FROM)                        \
    template <class T> PT_DEVICE T name(T x, FROM from) {   \
        unsigned words[(sizeof(T) + 3) / 4] = {};           \
        memcpy((void *)words, (const void *)&x, sizeof(T)); \
        for (int i = 0; i < (int)(sizeof(words) / 4); i++)  \
            words[i] = CALL(0xffffffffu, words[i], from);   \
        memcpy((void *)&x, (const void *)words, sizeof(T)); \
        return x;                                           \
    }
PT_SHUFFLE(shuffle, __shfl_sync, int)               // from lane `from`
PT_SHUFFLE(shuffle_xor, __shfl_xor_sync, int)       // from lane ^ `from`
PT_SHUFFLE(shuffle_up, __shfl_up_sync,
           unsigned)    // from lane - `from`; lanes below `from` get their own value
PT_SHUFFLE(shuffle_down, __shfl_down_sync, unsigned)
#undef PT_SHUFFLE

struct plus { template <class X> PT_DEVICE_MEMBER X operator()(X x, X y) const { return x + y; } };

// Combines the values of a warp's lanes; every lane gets the result.
template <class T, class F> PT_DEVICE T warp_reduce(T x, F combine) {
    for (int step = 16; step; step >>= 1) x = combine(x, shuffle_xor(x, step));
    return x;
}

// The sum over the warp's lanes up to and including the calling lane.
template <class N> PT_DEVICE N running_sum(N x) {
    for (unsigned step = 1; step < 32; step *= 2) {
        const N y = shuffle_up(x, step);
        if ((threadIdx.x & 31) >= step) x += y;
    }
    return x;
}

// Combines the values of a block's threads (a multiple of 32, all of which call); every thread gets
// the result. `identity` changes nothing when it is combined. May be called again at once.
template <class T, class F> PT_DEVICE T block_reduce(T x, F combine, T identity) {
    __shared__ T partial[32];
    const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5, warps = (blockDim.x + 31) >> 5;
    x = warp_reduce(x, combine);
    __syncthreads();                    // waits for readers of the last call's `partial`
    if (lane == 0) partial[warp] = x;
    __syncthreads();
    x = lane < warps ? partial[lane] : identity;
    return warp_reduce(x, combine);
}

}  // namespace
