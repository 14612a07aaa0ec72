"""Kernels as host C++: blocks on fibers, plain loops, and that seeded faults are found."""

import ctypes as c
import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parent / "host"))

import host_compiler
from _since import since
from child import PROGRAMS, Args, Names, child, fails, folder, image, kernels

pytestmark = since("cuda/host", "tests/cuda/host", "tests/cuda/test_host_kernels.py", "ptcore/_ops/include",
                   *(f"ptcore/cuda/{name}" for name in ("kernels/base.cuh", "kernels/divide.cuh", "kernels/mma.cuh",
                                                        "launch/divisor.hpp")))


@child
def test_plain_kernels(cu):
    scale, where, counts = kernels(cu, "plain", "scale", "where", "counts")
    x = np.arange(1000, dtype=np.float32)
    p, q = cu.upload(x), cu.alloc(x.nbytes)
    for seed in range(5):
        cu.seed(seed)
        cu.launch(scale, 3, 256, Args(p, q, 1000, seed))
        np.testing.assert_array_equal(cu.download(q, np.empty_like(x)), x * seed)
    n = 5 * 3 * 2 * 64
    p = cu.upload(np.zeros(n, np.int32))
    cu.launch(where, (5, 3, 2), (8, 4, 2), Names(p))
    got = cu.download(p, np.empty(n, np.int32))
    np.testing.assert_array_equal(got, np.arange(n) // 64 * 1000 + np.arange(n) % 64)
    p = cu.upload(np.zeros(4, np.int32))
    cu.launch(counts, 4, 256, Names(p))
    assert cu.download(p, np.empty(4, np.int32)).tolist() == [1024, 1023, 0, 1024]


@child
def test_meetings(cu):
    names = ["total", "right", "votes", "reverse", "warp_barrier"]
    total, right, votes, reverse, warp = kernels(cu, "blocks", *names)
    x = np.arange(1000, dtype=np.float32)
    p, q = cu.upload(x), cu.alloc(1024)
    for seed in range(20):
        cu.seed(seed)
        cu.launch(total, 2, 256, Args(p, q, 1000))
        np.testing.assert_array_equal(cu.download(q, np.empty(2, np.float32)), 499500 + 256)
        cu.launch(right, 1, 256, Args(0, q, 0))
        np.testing.assert_array_equal(cu.download(q, np.empty(256, np.float32)), 256 * 256 + 255 * 128)
        cu.launch(votes, 1, 64, Args(0, q, 0))
        np.testing.assert_array_equal(cu.download(q, np.empty(64, np.float32)), 1)
        cu.launch(reverse, 1, 256, Args(p, q, 0), shared=1024)
        np.testing.assert_array_equal(cu.download(q, np.empty(256, np.float32)), x[255::-1])
        cu.launch(warp, 1, 32, Args(0, q, 0))
        np.testing.assert_array_equal(cu.download(q, np.empty(32, np.float32)), x[31::-1])


@child
def test_divisors(cu):
    """Multiplication and shift in place of a division, for every size up to 2**63 - 1."""
    most, rng = 2**63 - 1, np.random.default_rng(0)
    ends = [1, 2, 3, 5, 7, 641, 2**31 - 1, 2**31, 2**31 + 1, 2**32 + 1, 3**39, 2**62, 2**62 + 1, most - 1, most]
    sizes = ends + [int(rng.integers(1, 2**int(bits))) for bits in rng.integers(2, 64, 400)]
    pairs = [(i, d) for d in sizes for k in (1, 2, 1000, most // d)
             for i in (0, d - 1, k * d - 1, k * d, k * d + d // 2, most) if 0 <= i <= most]
    pairs += [(int(rng.integers(0, most)), d) for d in sizes for _ in range(20)]
    numbers = np.array(pairs, np.int64).T.copy()
    expected = np.array([[i // d for i, d in pairs], [i % d for i, d in pairs]])
    p, q = cu.upload(numbers), cu.alloc(numbers.nbytes)
    for name in ("divide", "divide_plain"):
        cu.launch(kernels(cu, name, "quotients"), 1, 1, Args(p, q, len(pairs)))
        np.testing.assert_array_equal(cu.download(q, np.empty_like(numbers)), expected)


@child
def test_row_major_offsets(cu):
    """Of numbers, and in dims, below and above 2**31."""
    rng = np.random.default_rng(0)
    offsets = kernels(cu, "divide", "offsets")
    for sizes in ([3, 5, 7, 11], [2**20, 9, 2**20, 7], [6, 2**33 + 1, 1, 5], [2**28, 3, 2**31, 1],
                  [1, 1, 1, 2**40]):
        total = int(np.prod([int(s) for s in sizes], dtype=object))
        numbers = [0, total - 1, total // 2]
        numbers += [int(rng.integers(0, 2**int(b))) % total for b in rng.integers(1, 62, 50)]
        strides = [int(s) for s in rng.integers(-10**6, 10**6, 4)]
        expected = []
        for i in numbers:
            offset = 0
            for size, stride in zip(sizes[:0:-1], strides[:0:-1]):
                i, rest = divmod(i, size)
                offset += rest * stride
            expected.append(offset + i * strides[0])
        x = np.array(numbers + sizes + strides, np.int64)
        p, q = cu.upload(x), cu.alloc(8 * len(numbers))
        cu.launch(offsets, 1, 1, Args(p, q, len(numbers)))
        assert cu.download(q, np.empty(len(numbers), np.int64)).tolist() == expected


@child
def test_products_by_tensor_cores(cu):
    """The emulated instructions against plain products: few bits are exact, floats are rounded to 11."""
    rng = np.random.default_rng(0)
    names = ["halves", "halves_turned", "bfloats", "bfloats_turned", "floats", "floats_turned"]
    for name, kernel in zip(names, kernels(cu, "tensor", *names)):
        depth = 8 if "floats" == name.removesuffix("_turned") else 16
        for seed in range(3):
            cu.seed(seed)
            a, b = rng.integers(-100, 100, (16, depth)), rng.integers(-100, 100, (depth, 16))
            p = cu.upload(np.concatenate([a.ravel(), b.ravel()]).astype(np.float32))
            q = cu.upload(np.full((16, 16), np.nan, np.float32))
            cu.launch(kernel, 1, 32, Args(p, q))
            np.testing.assert_array_equal(cu.download(q, np.empty((16, 16), np.float32)), a @ b, err_msg=name)
    one = np.zeros((2, 16 * 8), np.float32)
    one[0, 0], one[1, 0] = 1 + 3 * 2.0**-12, 1 + 2.0**-12       # above and below half of the last bit that is kept
    p, q = cu.upload(one), cu.alloc(1024)
    cu.launch(kernel, 1, 32, Args(p, q))
    assert cu.download(q, np.empty((16, 16), np.float32))[0, 0] == 1 + 2.0**-10


@child
def test_more_shared_memory_is_asked_for(cu):
    """48 KiB without, up to what the device has after cuFuncSetAttribute."""
    reverse, q = kernels(cu, "blocks", "reverse"), cu.upload(np.arange(256, dtype=np.float32))
    cu.launch(reverse, 1, 256, Args(q, q, 0), shared=49152)
    fails(1, cu.launch, reverse, 1, 256, Args(q, q, 0), None, 49153)
    fails(1, cu.cuFuncSetAttribute, reverse, 8, 232449)
    cu.cuFuncSetAttribute(reverse, 8, 232448)
    cu.launch(reverse, 1, 256, Args(q, q, 0), shared=232448)
    np.testing.assert_array_equal(cu.download(q, np.empty(256, np.float32)), np.arange(256))


@child
def test_missing_barriers_show(cu):
    """Wrong results in most schedules."""
    q = cu.alloc(1024)
    expected = {"no_barrier": np.full(256, 256.0), "no_reuse_barrier": np.full(256, 256 * 256 + 255 * 128.0),
                "no_warp_barrier": np.arange(32)[::-1]}
    for name, right in expected.items():
        kernel, wrong = kernels(cu, "blocks", name), 0
        for seed in range(20):
            cu.seed(seed)
            cu.launch(kernel, 1, len(right), Args(0, q, 0))
            wrong += not np.array_equal(cu.download(q, np.empty(len(right), np.float32)), right)
        assert wrong >= 15, (name, wrong)


@child
def test_shared_memory_is_junk_at_first(cu):
    junk, q = kernels(cu, "blocks", "junk"), cu.alloc(1024)
    cu.launch(junk, 2, 256, Args(0, q, 0))
    assert np.isnan(cu.download(q, np.empty(256, np.float32))).tolist() == [True, False] * 128


@child
def test_bad_meetings_are_reported(cu):
    says = {"leaves": "others that never come: thread 5 has returned",
            "two_barriers": "threads meet at different barriers",
            "lanes_missing": "__shfl_xor_sync (base.cuh",
            "not_in_mask": "is not in the mask of its own __syncwarp",
            "one_of_each": "others that never come",
            "behind_shared": "an illegal access"}
    q = cu.alloc(1024)
    for name, text in says.items():
        kernel = kernels(cu, "blocks", name)
        cu.launch(kernel, 2, 32 if name in ("not_in_mask", "one_of_each") else 256, Args(0, q, 0), shared=1024)
        fails(700 if name == "behind_shared" else 719, cu.sync)
        assert text in cu.failure() and f"kernel {name}, block (" in cu.failure(), cu.failure()
        cu.clear()
    # and the fibers are none the worse
    cu.launch(kernels(cu, "blocks", "votes"), 1, 64, Args(0, q, 0))
    np.testing.assert_array_equal(cu.download(q, np.empty(64, np.float32)), 1)


@child
def test_faults_of_kernels(cu):
    y = cu.alloc(64)
    cu.time_limit(0.2)
    for name, args, code, text in [
            ("store", Args(0, 0, 0), 700, "illegal access to (nil)"),
            ("store", Args(0, y, 1 << 20), 700, "memory of device 0"),
            ("spin", Args(0, y, 0), 702, "longer than the time limit"),
            ("divide", Args(0, y, 5), 719, "divides an integer by zero"),
            ("trap", Args(0, y, 0), 719, "thread (3, 0, 0): __trap"),
            ("check", Args(0, y, 0), 710, "assertion failed: threadIdx.x < 3"),
            ("misaligned", Args(0, y + 4, 0, 1), (716, 700), "aligned"),    # the second where clang++ compiles
            ("outside", Args(0, y, 4, 1), 716, "outside of an array"),
            ("undeclared", Args(0, y, 0), 719, "PT_KERNEL_SYNC")]:
        cu.launch(kernels(cu, "plain", name), 1, 32 if name in ("trap", "check", "undeclared") else 1, args)
        fails(code, cu.sync)
        assert text in cu.failure(), cu.failure()
        cu.clear()


@pytest.mark.parametrize("fault, says, text", [
    ("overrun", "global-buffer-overflow", "threadIdx.x == 31)] = 1"),       # of shared memory, by one element
    ("behind", "use-after-poison", "a.y[a.n] = 1")])                        # of device memory
def test_address_sanitizer_finds_the_line(tmp_path, fault, says, text):
    if not Path(sanitizer := host_compiler.sanitizer_library()).exists():
        pytest.skip("no libasan")
    image("blocks", "address")

    @child(dies=1, says=says, keep=1, TMPDIR=str(tmp_path), LD_PRELOAD=sanitizer, ASAN_OPTIONS="detect_leaks=0",
           FAULT=fault)
    def test_sanitized(cu):
        pass

    test_sanitized()
    line = next(i for i, line in enumerate(PROGRAMS["blocks"].splitlines(), 2) if text in line)
    assert f"program.cpp:{line}" in test_sanitized.stderr, test_sanitized.stderr


@child
def test_sanitized(cu):
    """Run by the test above; alone the program is a plain one."""
    fault = os.environ.get("FAULT")
    program = cu.program(image("blocks", "address" if fault else ""))
    q = cu.alloc(1024)
    for seed in range(3):
        cu.seed(seed)
        cu.launch(cu.kernel(program, "right"), 1, 256, Args(0, q, 0))
        np.testing.assert_array_equal(cu.download(q, np.empty(256, np.float32)), 256 * 256 + 255 * 128)
        cu.launch(cu.kernel(program, "leaves"), 1, 256, Args(0, q, 0))      # gives fibers up
        fails(719, cu.sync)
        cu.clear()
    odd = cu.alloc(1000)            # a page ends where a multiple of 512 bytes does
    cu.launch(cu.kernel(program, "behind"), 1, 32, Args(0, odd, 249))
    cu.sync()
    if fault:
        cu.launch(cu.kernel(program, fault), 1, 32, Args(0, odd, 250))
        cu.sync()


@child
def test_races(cu):
    """Programs compiled to be checked for races: found in any schedule, with the lines; right ones are let pass."""
    blocks, plain = (cu.program(image(name, "races")) for name in ("blocks", "plain"))
    x, q = cu.upload(np.ones(1000, np.float32)), cu.alloc(1024)
    arrived = cu.upload(np.zeros(4, np.int32))
    partial = Args(cu.alloc(4 * 256), arrived, q)       # three pointers

    def run(program, name, args, grid=1, block=256, shared=0):
        cu.launch(cu.kernel(program, name), grid, block, args, None, shared)
        code = cu.call("cuCtxSynchronize")
        text = cu.failure()
        cu.clear()
        assert code in (0, 719), text
        return text

    for seed in range(5):
        cu.seed(seed)
        for name, block in (("right", 256), ("total", 256), ("votes", 64), ("warp_barrier", 32)):
            assert run(blocks, name, Args(x, q, 1000), 1, block) == ""
        assert run(blocks, "reverse", Args(x, q, 0), shared=1024) == ""
        assert run(blocks, "fenced", partial, 4, 64) == ""
        assert run(plain, "scale", Args(x, q, 200, 2), 2) == ""
        assert run(plain, "counts", Names(arrived), 3) == ""
        for name, block in (("no_barrier", 256), ("no_reuse_barrier", 256), ("no_warp_barrier", 32)):
            text = run(blocks, name, Args(x, q, 0), 1, block)
            assert "a race in shared memory: " in text and "write by thread" in text, (name, text)
            assert text.count("program.cpp:") == 2 or shutil.which("addr2line") is None, text
        cu.cuMemsetD32(c.c_uint64(arrived), 0, c.c_size_t(4))
        assert "a race in device memory" in run(blocks, "not_fenced", partial, 4, 64)
        cu.cuMemsetD32(c.c_uint64(arrived), 0, c.c_size_t(4))
        assert "write by thread 0 of block" in run(plain, "store", Args(x, q, 0), 2, 1)


SQUARE = """#include "base.cuh"
struct Args { const float *x; float *y; int64_t n; float by; };
PT_KERNEL(square, Args, a, 32) { if (threadIdx.x < a.n) a.y[threadIdx.x] = a.x[threadIdx.x] * a.x[threadIdx.x] + a.by; }
"""


@child
def test_products_are_fused_where_that_is_asked_for(cu):
    """What rounding takes off a square is left when the square's rounded value is."""
    x = np.float32(1 + 2.0**-12)
    p, q = cu.upload(np.full(1, x)), cu.alloc(4)
    for options, left in (([], 0), (host_compiler.FUSED, 2.0**-24)):
        program = cu.program(host_compiler.cached(SQUARE, folder(), options=options))
        cu.launch(cu.kernel(program, "square"), 1, 32, Args(p, q, 1, -float(x * x)))
        assert cu.download(q, np.empty(1, np.float32))[0] == left


FIBERS = r"""
#include "fibers.hpp"
#include <cstdio>
using namespace standin;
static Fiber fibers[3];
static int sum;
static void run(void *p) {
    const int n = *(int *)p;
    double kept = n * 0.5;
    for (int i = 0;; i++) {
        sum = sum * 3 + n;
        fibers[n].wait();
        if (kept != n * 0.5) sum = -1;
    }
}
int main() {
    static int numbers[3] = {0, 1, 2};
    for (int again = 0; again < 2; again++) {
        for (int n = 0; n < 3; n++) fibers[n].start(run, &numbers[n], 65536);
        for (int i = 0; i < 4; i++)
            for (int n = 2; n >= 0; n--) fibers[n].resume();
    }
    printf("%d\n", sum);
}
"""


@pytest.mark.parametrize("flag", ["-DPT_ASSEMBLY_IF_ANY", "-DPT_UCONTEXT"])
def test_fibers(tmp_path, flag):
    """Both ways of switching; the second is what other processors have."""
    source, program = tmp_path / "main.cpp", tmp_path / "main"
    source.write_text(FIBERS)
    command = [*host_compiler.compiler(), "-std=c++17", "-O1", flag, f"-I{host_compiler.HERE}", source,
               host_compiler.HERE / "fibers.cpp", "-o", program, "-ldl"]
    subprocess.run(command, check=True)
    expected = 0
    for n in [2, 1, 0] * 8:
        expected = (expected * 3 + n + 2**31) % 2**32 - 2**31
    assert int(subprocess.run([program], check=True, capture_output=True, text=True).stdout) == expected
