"""Tests that run in a process of their own, which has the stand-in driver; and the kernels that they launch."""

import ctypes as c
import functools
import os
import runpy
import subprocess
import sys
from pathlib import Path

import host_compiler
import numpy as np
import standin

PROGRAMS = {
    # without meetings
    "plain": """
        struct Args { const float *x; float *y; int64_t n; float by; };
        PT_KERNEL(scale, Args, a, 256) {
            for (int64_t i = thread_index(); i < a.n; i += thread_count()) a.y[i] = a.x[i] * a.by;
        }
        PT_KERNEL(add, Args, a, 256) {
            for (int64_t i = thread_index(); i < a.n; i += thread_count()) a.y[i] = a.y[i] + a.by;
        }
        PT_KERNEL(store, Args, a, 1) { a.y[a.n] = a.by; }
        PT_KERNEL(spin, Args, a, 1) { for (volatile int i = 0;;) i = i + 1; }
        PT_KERNEL(divide, Args, a, 1) { volatile int zero = 0; a.y[0] = float(int(a.n) / zero); }
        PT_KERNEL(trap, Args, a, 32) { if (threadIdx.x == 3) __trap(); }
        PT_KERNEL(check, Args, a, 32) { assert(threadIdx.x < 3); }
        PT_KERNEL(misaligned, Args, a, 1) { *reinterpret_cast<float4 *>(a.y) = make_float4(1, 2, 3, a.by); }
        PT_KERNEL(outside, Args, a, 1) { float r[4] = {1, 2, 3, 4}; a.y[0] = r[a.n]; }
        PT_KERNEL(undeclared, Args, a, 32) { __syncthreads(); }
        struct Names { int *p; };
        PT_KERNEL(where, Names, a, 64) {
            const int block = blockIdx.x + gridDim.x * (blockIdx.y + gridDim.y * blockIdx.z);
            const int thread = threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z);
            a.p[block * blockDim.x * blockDim.y * blockDim.z + thread] += block * 1000 + thread;
        }
        PT_KERNEL(counts, Names, a, 256) {
            atomicAdd(a.p, 1);
            atomicMax(a.p + 1, (int)thread_index());
            atomicAdd((unsigned long long *)(a.p + 2), 1ull << 32);
        }
    """,
    # quotients and rests of n numbers by as many divisors; offsets of n numbers in four dims, whose sizes and strides
    # follow
    "divide": """
        #include "divide.cuh"
        #include "divisor.hpp"
        struct Args { const int64_t *x; int64_t *y; int64_t n; float by; };
        PT_KERNEL(quotients, Args, a, 1) {
            for (int64_t i = 0; i < a.n; i++) {
                const Divisor d = pt_cuda::divisor(a.x[a.n + i]);
                int64_t whole = a.x[i];
                a.y[a.n + i] = take_rest(whole, d);
                a.y[i] = whole;
            }
        }
        PT_KERNEL(offsets, Args, a, 1) {
            PT_DIVISORS(5) dims = {};           // of which the first does not count
            for (int d = 0; d < 4; d++) dims.sizes[1 + d] = a.x[a.n + d];
            dims.sizes[0] = 3;
            pt_cuda::divide_by_sizes(dims, 5, 1);
            for (int64_t i = 0; i < a.n; i++) {
                a.y[i] = 0;
                each_coordinate<1>(dims, 1, 4, a.x[i], [&](int64_t at, int d) { a.y[i] += at * a.x[a.n + 3 + d]; });
            }
        }
    """,
    # products of 16 x K and K x 16 numbers by a warp, whose tiles are rows of both, or (turned) lines of K
    "tensor": """
        #include "mma.cuh"
        struct Args { const float *x; float *y; int64_t n; float by; };
        template <class E, bool TURNED> PT_DEVICE void product(const Args &a) {
            enum { EACH = 16 / sizeof(E), K = 2 * EACH, BYTES = 128, TURNED_BYTES = 64 * sizeof(E) };
            __align__(256) __shared__ unsigned char left[16 * BYTES], right[16 * BYTES];
            __align__(256) __shared__ unsigned char tall[K * TURNED_BYTES], wide[K * TURNED_BYTES];
            for (int i = threadIdx.x; i < 16 * K; i += 32) {
                const int r = i / K, k = i % K, place = r * BYTES + ((k / EACH ^ (r & 7)) << 4) + k % EACH * sizeof(E);
                const int word = Turned<E, TURNED_BYTES>::place(k, r / EACH);
                const int turned = k * TURNED_BYTES + word + r % EACH * sizeof(E);
                *reinterpret_cast<E *>(left + place) = *reinterpret_cast<E *>(tall + turned) = down_to<E>::from(a.x[i]);
                *reinterpret_cast<E *>(right + place) = *reinterpret_cast<E *>(wide + turned) =
                    down_to<E>::from(a.x[16 * K + k * 16 + r]);
            }
            __syncwarp();
            uint32_t l[4], r[4];
            float d[2][4] = {};
            if (TURNED) {
                Turned<E, TURNED_BYTES>(place_of(tall)).load_left(l, 0, 0, 0);
                Turned<E, TURNED_BYTES>(place_of(wide)).load_right(r, 0, 0, 0);
            } else {
                load_matrices(l, left_place<64>(place_of(left)));
                load_matrices(r, right_place<64>(place_of(right)));
            }
            rounded(l, E());
            rounded(r, E());
            for (int j = 0; j < 2; j++) multiply_add(d[j], l, r[2 * j], r[2 * j + 1], E());
            for (int j = 0; j < 2; j++)
                for (int v = 0; v < 4; v++)
                    a.y[(threadIdx.x / 4 + v / 2 * 8) * 16 + 8 * j + threadIdx.x % 4 * 2 + v % 2] = d[j][v];
        }
        PT_KERNEL_SYNC(halves, Args, a, 32) { product<half, false>(a); }
        PT_KERNEL_SYNC(halves_turned, Args, a, 32) { product<half, true>(a); }
        PT_KERNEL_SYNC(bfloats, Args, a, 32) { product<bfloat16, false>(a); }
        PT_KERNEL_SYNC(bfloats_turned, Args, a, 32) { product<bfloat16, true>(a); }
        PT_KERNEL_SYNC(floats, Args, a, 32) { product<float, false>(a); }
        PT_KERNEL_SYNC(floats_turned, Args, a, 32) { product<float, true>(a); }
    """,
    # with meetings, right and wrong
    "blocks": """
        struct Args { const float *x; float *y; int64_t n; };
        struct Sum { template <class T> PT_DEVICE_MEMBER T operator()(T x, T y) const { return x + y; } };
        struct Mean {
            double sum; float count; short tag;
            Mean() = default;
            PT_DEVICE_MEMBER Mean(double s, float c, short t) : sum(s), count(c), tag(t) {}
        };
        struct MeanSum { PT_DEVICE_MEMBER Mean operator()(Mean a, Mean b) const {
            return Mean(a.sum + b.sum, a.count + b.count, (short)(a.tag | b.tag)); } };
        PT_KERNEL_SYNC(total, Args, a, 256) {
            float s = 0;
            for (int64_t i = threadIdx.x; i < a.n; i += blockDim.x) s += a.x[i];
            s = block_reduce(s, Sum(), 0.0f);
            float t = block_reduce(s * (threadIdx.x == 0), Sum(), 0.0f);        // at once again: the reuse barrier
            if (threadIdx.x == 7) a.y[blockIdx.x] = t + block_reduce(Mean(1, 2, 3), MeanSum(), Mean(0, 0, 0)).sum;
            else block_reduce(Mean(1, 2, 3), MeanSum(), Mean(0, 0, 0));
        }
        template <bool BEFORE, bool BETWEEN> PT_DEVICE float sum(float x) {
            __shared__ float partial[32];
            x = warp_reduce(x, Sum());
            if (BEFORE) __syncthreads();
            if (threadIdx.x % 32 == 0) partial[threadIdx.x / 32] = x;
            if (BETWEEN) __syncthreads();
            return warp_reduce(threadIdx.x % 32 < blockDim.x / 32 ? partial[threadIdx.x % 32] : 0.0f, Sum());
        }
        PT_KERNEL_SYNC(right, Args, a, 256) {
            const float once = sum<true, true>(1.0f), twice = sum<true, true>(once + threadIdx.x);
            a.y[threadIdx.x] = twice;
        }
        PT_KERNEL_SYNC(no_barrier, Args, a, 256) { a.y[threadIdx.x] = sum<true, false>(1.0f); }
        PT_KERNEL_SYNC(no_reuse_barrier, Args, a, 256) {
            const float once = sum<false, true>(1.0f), twice = sum<false, true>(once + threadIdx.x);
            a.y[threadIdx.x] = twice;
        }
        PT_KERNEL_SYNC(no_warp_barrier, Args, a, 32) {
            __shared__ float s[32];
            s[threadIdx.x] = threadIdx.x;
            a.y[threadIdx.x] = s[31 - threadIdx.x];
        }
        PT_KERNEL_SYNC(warp_barrier, Args, a, 32) {
            __shared__ float s[32];
            s[threadIdx.x] = threadIdx.x;
            __syncwarp();
            a.y[threadIdx.x] = s[31 - threadIdx.x];
        }
        PT_KERNEL_SYNC(junk, Args, a, 256) {
            __shared__ float s[256];
            if (threadIdx.x % 2) s[threadIdx.x] = 1;
            __syncthreads();
            a.y[threadIdx.x] = s[threadIdx.x];
        }
        PT_KERNEL_SYNC(reverse, Args, a, 256) {
            PT_DYNAMIC_SHARED(float, s);
            s[threadIdx.x] = a.x[threadIdx.x];
            __syncthreads();
            a.y[threadIdx.x] = s[blockDim.x - 1 - threadIdx.x];
        }
        PT_KERNEL_SYNC(behind_shared, Args, a, 256) { PT_DYNAMIC_SHARED(float, s); s[blockDim.x] = 1; }
        PT_KERNEL_SYNC(leaves, Args, a, 256) { if (threadIdx.x == 5) return; __syncthreads(); }
        PT_KERNEL_SYNC(two_barriers, Args, a, 256) {
            if (threadIdx.x < 32) __syncthreads();
            else
                __syncthreads();
        }
        PT_KERNEL_SYNC(lanes_missing, Args, a, 256) { if (threadIdx.x % 2) a.y[0] = warp_reduce(1.0f, Sum()); }
        PT_KERNEL_SYNC(not_in_mask, Args, a, 32) { __syncwarp(1u); }
        PT_KERNEL_SYNC(one_of_each, Args, a, 32) {
            if (threadIdx.x < 16) __ballot_sync(0xffffffffu, 1);
            else __any_sync(0xffffffffu, 1);
        }
        struct Partial { float *partial; int *arrived; float *out; };
        template <bool FENCE> PT_DEVICE void last_block(const Partial &a) {
            __shared__ int last;
            a.partial[blockIdx.x * blockDim.x + threadIdx.x] = 1;
            if (FENCE) __threadfence();
            __syncthreads();
            if (threadIdx.x == 0) last = atomicAdd(a.arrived, 1) == (int)gridDim.x - 1;
            __syncthreads();
            if (!last) return;
            float sum = 0;
            for (unsigned i = threadIdx.x; i < gridDim.x * blockDim.x; i += blockDim.x) sum += a.partial[i];
            sum = block_reduce(sum, Sum(), 0.0f);
            if (threadIdx.x == 0) { *a.out = sum; *a.arrived = 0; }
        }
        PT_KERNEL_SYNC(fenced, Partial, a, 64) { last_block<true>(a); }
        PT_KERNEL_SYNC(not_fenced, Partial, a, 64) { last_block<false>(a); }
        PT_KERNEL_SYNC(votes, Args, a, 64) {
            const unsigned low = 0xffffu, half = threadIdx.x % 32 < 16 ? low : ~low;
            const int lane = threadIdx.x % 32;
            bool ok = __ballot_sync(0xffffffffu, lane % 3 == 0) == 0x49249249u;
            ok &= __any_sync(half, lane == 20) == (lane >= 16) && __all_sync(half, lane < 16) == (lane < 16);
            ok &= __syncthreads_count(threadIdx.x % 2) == 32 && __syncthreads_or(threadIdx.x == 40) == 1;
            ok &= __syncthreads_and(threadIdx.x != 40) == 0 && __syncthreads_and(1) == 1;
            ok &= __shfl_sync(0xffffffffu, lane, 5, 8) == (lane & ~7) + 5;
            ok &= __shfl_up_sync(0xffffffffu, (int64_t)lane << 40, 3) == (int64_t)(lane < 3 ? lane : lane - 3) << 40;
            ok &= __shfl_down_sync(0xffffffffu, (double)lane, 1, 16) == (lane % 16 == 15 ? lane : lane + 1);
            ok &= __shfl_xor_sync(0xffffffffu, (float)lane, 9) == (lane ^ 9);
            ok &= __match_any_sync(0xffffffffu, lane & 1) == (lane & 1 ? 0xaaaaaaaau : 0x55555555u);
            ok &= shuffle(Mean(lane, 1, 2), 4).sum == 4 && shuffle_up(Mean(lane, 1, 2), 1).sum == (lane ? lane - 1 : 0);
            ok &= __popc(half) == 16 && __clz(1) == 31 && __ffs(8) == 4 && __umulhi(1u << 31, 6) == 3;
            ok &= max(3, 4) == 4 && min(2.0f, 1.0f) == 1.0f && max((int64_t)1 << 40, (int64_t)2) == (int64_t)1 << 40;
            a.y[threadIdx.x] = ok;
        }
        PT_KERNEL(behind, Args, a, 32) {
            a.y[a.n] = 1;
        }
        PT_KERNEL_SYNC(overrun, Args, a, 32) {
            __shared__ float s[32];
            __syncthreads();
            s[threadIdx.x + (threadIdx.x == 31)] = 1;
            a.y[0] = s[0];
        }
    """,
}


# As where the compiler has no integers of 128 bits.
PROGRAMS["divide_plain"] = "#undef __SIZEOF_INT128__\n" + PROGRAMS["divide"]


class Args(c.Structure):
    _fields_ = (("x", c.c_uint64), ("y", c.c_uint64), ("n", c.c_int64), ("by", c.c_float))


class Names(c.Structure):
    _fields_ = (("p", c.c_uint64),)


def folder():
    return Path(os.environ.get("PTCORE_STANDIN_FOLDER") or host_compiler.ROOT / "build/standin")


@functools.cache
def build():
    """The libraries, and each program's image in a file."""
    host_compiler.build_standin(folder())
    host_compiler.build_cublas(folder())
    host_compiler.build_cublaslt(folder())
    for name in PROGRAMS:
        image(name)


def image(name, sanitize=""):
    text = '#include "base.cuh"\n' + PROGRAMS[name]
    return host_compiler.cached(text, folder(), sanitize=sanitize)


def child(test=None, *, dies=0, says="", needs="", **settings):
    """A test that runs in a process of its own, which ends with the status ``dies`` and ``says`` something on stderr.

    The process has a Driver with device 0 current, which the function takes. ``needs`` is a module without which the
    test is skipped; other settings are PTCORE_STANDIN_*, or environment variables where they are upper case.
    """
    if test is None:
        return lambda test: child(test, dies=dies, says=says, needs=needs, **settings)

    def in_child():
        import pytest
        try:
            host_compiler.compiler()
        except host_compiler.CompileError as e:
            pytest.skip(str(e))
        if needs:
            pytest.importorskip(needs)
        build()
        env = {k: v for k, v in os.environ.items() if not k.startswith("PTCORE_STANDIN")}
        env |= {"PTCORE_STANDIN_FOLDER": str(folder())}
        env |= {f"PTCORE_STANDIN_{k.upper()}": str(v) for k, v in settings.items() if k.islower()}
        env |= {k: v for k, v in settings.items() if k.isupper()}
        command = [sys.executable, __file__, test.__code__.co_filename, test.__name__]
        done = subprocess.run(command, env=env, capture_output=True, text=True)
        assert done.returncode == dies, done.stdout + done.stderr
        assert says in done.stderr, done.stderr
        in_child.stderr = done.stderr

    in_child.__name__, in_child.__doc__, in_child.child = test.__name__, test.__doc__, test
    return in_child


def fails(code, function, *args):
    got = 0
    try:
        function(*args)
    except standin.DriverError as e:
        got = e.code
    assert got == code or (isinstance(code, tuple) and got in code), got


def kernels(cu, name, *names):
    program = cu.program(image(name))
    found = [cu.kernel(program, k) for k in names]
    return found[0] if len(found) == 1 else found


def fill(cu, address, value, stream=None):
    cu.cuMemsetD32Async(c.c_uint64(address), int(np.float32(value).view(np.uint32)), c.c_size_t(1), stream)


def value(cu, address):
    return float(cu.download(address, np.empty(1, np.float32))[0])


# cudaDataType of NumPy's types and of bfloat16.
TYPES = {"f2": 2, "bf16": 14, "f4": 0, "f8": 1, "c8": 4, "c16": 5}


def stored(x, name):
    """The array as it lies in memory, and its values."""
    if name != "bf16":
        x = np.asfortranarray(x.astype(name))
        return x, x.astype("c16" if name[0] == "c" else "f8")
    bits = np.asfortranarray(x.astype("f4")).view("u4") >> 16
    return bits.astype("u2", order="F"), (bits << 16).astype("u4").view("f4").astype("f8")


def loaded(x, name):
    return x if name != "bf16" else (x.astype("u4") << 16).view("f4")


def pointer(array):
    return c.c_void_p(array.ctypes.data)


if __name__ == "__main__":
    sys.path.append(str(Path(__file__).parents[2]))     # what test files import beside this folder
    build()
    driver = standin.load(folder())
    driver.init()
    runpy.run_path(sys.argv[1])[sys.argv[2]].child(driver)
