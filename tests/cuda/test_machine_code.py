"""``_machine_code`` on kernels of known shape, and what budgets say; NVRTC and nvdisasm, no GPU."""
import importlib.util
from pathlib import Path

import _budgets
import _machine_code
import _usage
import pytest

if not importlib.util.find_spec("ptcore.cuda._backend"):
    pytest.skip("ptcore was built without the CUDA backend", allow_module_level=True)
if not importlib.util.find_spec("cuda") or not importlib.util.find_spec("cuda.bindings.nvrtc"):
    pytest.skip("NVRTC is not installed", allow_module_level=True)
if not _machine_code.nvdisasm():
    pytest.skip("nvdisasm is not installed", allow_module_level=True)

from ptcore.cuda import _compile

TEXT = """
extern "C" {
__global__ void scale(float *p, long long n, float by) {
#pragma unroll 1
    for (long long i = threadIdx.x; i < n; i += 256) p[i] *= by;
}
__global__ void scale_packs(float4 *p, long long n, float by) {
#pragma unroll 1
    for (long long i = threadIdx.x; i < n; i += 256) {
        float4 x = p[i];
        p[i] = make_float4(x.x * by, x.y * by, x.z * by, x.w * by);
    }
}
__global__ void scale_once(float4 *p, float by, float *first) {
    if (threadIdx.x == 0)
#pragma unroll 1
        for (int i = 0; i < 100; i++) first[i] = by;
    float4 x = p[threadIdx.x];
    p[threadIdx.x] = make_float4(x.x * by, x.y * by, x.z * by, x.w * by);
}
__global__ void divided(long long *p, long long n, long long by) {
#pragma unroll 1
    for (long long i = threadIdx.x; i < n; i += 256) p[i] /= by;
}
__global__ void divided_32(int *p, int n, int by) {
#pragma unroll 1
    for (int i = threadIdx.x; i < n; i += 256) p[i] /= by;
}
__global__ void divided_within(long long *p, long long n, long long by) {
#pragma unroll 1
    for (long long i = threadIdx.x; i < n; i += 256) {
        const long long first = i / by;
#pragma unroll 1
        for (long long j = first; j < first + n; j++) p[j] = i;
    }
}
__global__ void divided_before(long long *p, long long n, long long by) {
    const long long first = n / by;
#pragma unroll 1
    for (long long i = first + threadIdx.x; i < n; i += 256) p[i] = i;
}
__global__ void doubled(float *p, long long n, double by) {
#pragma unroll 1
    for (long long i = threadIdx.x; i < n; i += 256) p[i] = p[i] * by;
}
__global__ void chosen(float *p, long long n) {
#pragma unroll 1
    for (long long i = threadIdx.x; i < n; i += 256) {
        float x = p[i];
        if (x > 0) {
            asm volatile("" ::: "memory");
            for (int k = 0; k < 4; k++) x = __sinf(x) * __expf(x);
        }
        p[i] = x;
    }
}
__global__ void multiplied_tensor(unsigned *p, float *q) {
    float d[4] = {};
#pragma unroll 1
    for (int i = 0; i < 100; i++)
        asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %4, %4, %4}, {%4, %4}, "
                     "{%0, %1, %2, %3};" : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]) : "r"(p[i]));
    q[threadIdx.x] = d[0] + d[1] + d[2] + d[3];
}
__global__ void without_tensor(float *p) { p[threadIdx.x] = 1; }
}
"""


@pytest.fixture(scope="module")
def cubin():
    return _compile.NVRTC().compile(TEXT, {}, 90)


@pytest.fixture(scope="module")
def kernels(cubin):
    return _machine_code.kernels(cubin)


def divisions(kernel):
    return sum(i.divides for i in kernel.looped)


@pytest.mark.parametrize(("name", "width", "moved"), [("scale", 4, 8), ("scale_packs", 16, 32), ("scale_once", 16, 32)])
def test_the_main_path_has_the_widest_accesses(kernels, name, width, moved):
    """A loop, and what is no loop beside a loop of less width."""
    path = kernels[name].main_path()
    moves = [i.bytes for i in path if i.bytes == width]
    assert sum(moves) == moved
    assert sum(i.op.startswith("FMUL") for i in path) == width // 4
    assert len(path) < 40


def test_divisions(kernels):
    """Of 64 bits, in loops; 32 bits take no call, and a kernel may divide before its loop."""
    assert divisions(kernels["divided"]) > 0
    assert divisions(kernels["divided_32"]) == divisions(kernels["scale"]) == 0
    within = kernels["divided_within"]
    assert len(within.loops) == 2 and len(within.innermost) == 1
    assert divisions(within) > 0
    before = kernels["divided_before"]
    assert divisions(before) == 0
    assert any(i.divides for code in before.blocks.values() for i in code)


def test_the_longest_way(kernels):
    """Without the calls that divide."""
    kernel = kernels["chosen"]
    short, long = kernel.main_path(), kernel.main_path(longest=True)
    assert sum(i.op.startswith("MUFU") for i in short) == 0 < sum(i.op.startswith("MUFU") for i in long)
    kernel = kernels["divided"]
    assert not any(i.divides for i in kernel.main_path(longest=True))


def test_a_call_counts_as_what_is_called(kernels):
    kernel = kernels["divided"]
    (call, ) = [i for code in kernel.blocks.values() for i in code if i.divides]
    called = kernel.others[call.rest.strip("`()")]
    assert kernel.cost([call]) == 1 + sum(map(len, called.blocks.values())) > 50
    assert kernel.cost(kernel.main_path()) < kernel.cost([call])        # the way of 32 bits beside it


def test_doubles_and_products(kernels):
    assert any(i.double for i in kernels["doubled"].main_path())
    assert not any(i.double for i in kernels["scale"].main_path())
    assert sum(i.product for i in kernels["multiplied_tensor"].main_path()) == 1
    assert len(kernels["multiplied_tensor"].main_path()) < 20


def test_what_is_against_the_rules_is_said(cubin, kernels, monkeypatch):
    monkeypatch.setattr(_budgets, "BUDGETS", [_budgets.Budget("test", "float", "scale", 16, 8, 8, 5)])
    wrong = _budgets.too_much("test", ["float"], cubin)
    kernels = ["divided", "divided_within", "scale", "scale", "without_tensor"]
    assert sorted(line.partition(":")[0] for line in wrong) == kernels
    assert "scale: the widest access has 4 bytes, not 16" in wrong
    assert any("scale: instructions of test, float, for each element: 12.0, 140% over 5" in line for line in wrong)
    monkeypatch.setattr(_budgets, "BUDGETS", [_budgets.Budget("test", "float", "doubled", 4, 8, 8, 50)])
    assert "doubled: 1 instructions of float64" in _budgets.too_much("test", ["float"], cubin)
    monkeypatch.setattr(_budgets, "DIVIDING", {"divided(_within)?": 9})
    monkeypatch.setattr(_budgets, "BUDGETS", [_budgets.Budget("test", "float", "scale", 4, 8, 8, 20)])
    (left,) = _budgets.too_much("test", ["float"], cubin)
    assert left == "without_tensor: no product by tensor cores in the main path"


def test_arguments_beyond_their_bound(monkeypatch):
    monkeypatch.setattr(_compile.NVRTC, "OPTIONS", (*_compile.NVRTC.OPTIONS, _usage.VERBOSE))
    text = """struct Wide { char *to; char bytes[%d]; };
              extern "C" __global__ void __launch_bounds__(64) wide(Wide a) { *a.to = a.bytes[0]; }"""
    nvrtc = _compile.NVRTC()
    for room, said in ((1016, []), (1024, ["wide: 1032 bytes of arguments"])):
        cubin = nvrtc.compile(text % room, {}, 90)
        assert _usage.declared(cubin) == {"wide": {"threads": 64, "arguments": 8 + room}}
        assert _usage.too_much("test", nvrtc.log, cubin) == said
        assert _usage.too_much("step:adam", nvrtc.log, cubin) == []


def test_predictions_stand_beside_what_was_measured():
    results = Path(__file__).parents[2] / "benchmarks" / "RESULTS-gpu.md"
    if not results.exists():
        pytest.skip("needs the source tree")
    lines = results.read_text().splitlines()
    for row in _budgets.predictions():
        assert [line for line in lines if line.startswith(row)], f"python tests/cuda/_budgets.py prints: {row}"
