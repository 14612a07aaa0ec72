"""Products on the device: which of cuBLAS's functions computes them, workspaces, handles, settings of precision."""
import ctypes
import threading
import time
from pathlib import Path

import pytest

import ptcore
from ptcore import cuda
from ptcore.backends.cuda import matmul
from ptcore.cuda.driver import libraries as _libraries
from ptcore.nn import functional

REAL = ["float32", "float64", "float16", "bfloat16"]
TOLERANCE = {"float32": 1e-5, "float64": 1e-12, "float16": 2e-2, "bfloat16": 2e-1}
MIB = 1 << 20


@pytest.fixture(autouse=True)
def first_device():
    cuda.set_device(0)
    yield
    cuda.synchronize()


class Libraries:
    """The stand-ins' reports: compute, precision, handles, heuristics."""

    def __init__(self, driver):
        self.launched = lambda: launches(driver)
        self.blas, self.lt = (ctypes.CDLL(_libraries.library_path(name)) for name in ("cublas", "cublasLt"))

    @staticmethod
    def report(library):
        four = (ctypes.c_int * 4)()
        library.standin_report(four)
        return dict(zip(("compute", "precision", "handles", "heuristics"), four))


def launches(driver):
    n = driver.standin_launched_names(None, ctypes.c_size_t(0))
    text = ctypes.create_string_buffer(n)
    driver.standin_launched_names(text, ctypes.c_size_t(n))
    return {name: driver.standin_launched(name.encode()) for name in text.value.decode().split()}


@pytest.fixture
def libraries(driver):
    return Libraries(driver)


def launched_by(libraries, function):
    """The result, and the kernels that it launched."""
    cuda.synchronize()
    before = libraries.launched()
    result = function()
    cuda.synchronize()
    after = libraries.launched()
    return result, {k: n - before.get(k, 0) for k, n in after.items() if n != before.get(k, 0)}


def close(got, want, dtype):
    ptcore.testing.assert_close(got.cpu().double(), want.double(), rtol=TOLERANCE[dtype], atol=TOLERANCE[dtype])


@pytest.mark.parametrize("dtype", REAL)
def test_a_bias_is_added_by_the_product(dtype):
    kind = getattr(ptcore, dtype)
    ptcore.manual_seed(0)
    for rows, inner, columns in ((5, 7, 3), (1, 8, 16), (16, 8, 1), (2, 1, 4)):
        x, w, b = ptcore.randn(rows, inner), ptcore.randn(columns, inner), ptcore.randn(columns)
        x, w, b = (t.to(kind) for t in (x, w, b))
        want = functional.linear(x, w, b)
        there = [t.cuda() for t in (x, w, b)]
        close(functional.linear(*there), want, dtype)
        close(ptcore.addmm(there[2], there[0], there[1].t(), alpha=0.5), ptcore.addmm(b, x, w.t(), alpha=0.5), dtype)
        close(functional.linear(there[0].t().contiguous().t(), *there[1:]), want, dtype)
        close(functional.linear(there[0].expand(3, rows, inner), *there[1:])[2], want, dtype)


@pytest.mark.parametrize("dtype", REAL)
def test_one_kernel(libraries, dtype):
    kind = getattr(ptcore, dtype)
    x, w, b = (ptcore.ones(*s, dtype=kind, device="cuda") for s in ((4, 6), (8, 6), (8,)))
    assert launched_by(libraries, lambda: functional.linear(x, w, b))[1] == {"cublasLtMatmul": 1}
    assert launched_by(libraries, lambda: ptcore.addmm(b, x, w.t()))[1] == {"cublasLtMatmul": 1}
    assert launched_by(libraries, lambda: ptcore.addmm(b[None], x, w.t(), alpha=2))[1] == {"cublasLtMatmul": 1}
    got, kernels = launched_by(libraries, lambda: ptcore.addmm(b, x, w.t(), beta=2))
    assert kernels.pop("cublasGemmEx") == 1 and "cublasLtMatmul" not in kernels
    assert got.cpu().tolist() == [[8.0] * 8] * 4
    assert "cublasLtMatmul" not in launched_by(libraries, lambda: ptcore.addmm(got, x, w.t()))[1]
    assert launched_by(libraries, lambda: functional.linear(x, w))[1] == {"cublasGemmEx": 1}


@pytest.mark.parametrize("dtype", REAL)
@pytest.mark.parametrize("offset", [(1, 0, 0), (0, 3, 0), (0, 0, 1), (1, 1, 1)])
def test_unaligned_operands(dtype, offset):
    kind = getattr(ptcore, dtype)
    x, w, b = (ptcore.arange(60 + o, dtype=kind)[o:] % 7 for o in offset)
    shapes = ((4, 6), (8, 6), (8,))
    here = [ptcore.arange(60 + o, dtype=kind)[o:] % 7 for o in offset]
    there = []
    for t, o, shape in zip(here, offset, shapes):
        room = ptcore.zeros(60 + o, dtype=kind, device="cuda")
        room[o:] = t.cuda()
        n = shape[0] * shape[-1] if len(shape) > 1 else shape[0]
        there.append(room[o:o + n].view(shape))
        assert there[-1].data_ptr() % 16 == (o * x.element_size()) % 16
    want = functional.linear(x[:24].view(4, 6), w[:48].view(8, 6), b[:8])
    close(functional.linear(*there), want, dtype)


def test_what_cublaslt_declines_runs_by_cublas(libraries):
    x, w, b = (ptcore.arange(6., device="cuda").reshape(2, 3) for _ in range(3))
    for status in (15, 7, 8):
        shape = 3 + status                      # not met before
        w, b = ptcore.ones(shape, 3, device="cuda"), ptcore.ones(shape, device="cuda")
        libraries.lt.standin_decline(status)
        try:
            for _ in range(2):                  # the refusal is remembered
                got, kernels = launched_by(libraries, lambda w=w, b=b: functional.linear(x, w, b))
                assert kernels.pop("cublasGemmEx") == 1 and "cublasLtMatmul" not in kernels
                assert got.cpu().tolist() == [[4.0] * shape, [13.0] * shape]
        finally:
            libraries.lt.standin_decline(0)
    libraries.lt.standin_decline(13)
    try:
        with pytest.raises(RuntimeError, match=r"linear: cuBLAS: execution failed \(status 13\)"):
            functional.linear(x, ptcore.ones(29, 3, device="cuda"), ptcore.ones(29, device="cuda"))
    finally:
        libraries.lt.standin_decline(0)
    assert functional.linear(x, ptcore.ones(29, 3, device="cuda"), ptcore.ones(29, device="cuda")).shape == (2, 29)


def test_heuristics_are_asked_once(libraries):
    x, w, b = (ptcore.ones(*s, device="cuda") for s in ((31, 6), (8, 6), (8,)))
    functional.linear(x, w, b)
    before = libraries.report(libraries.lt)["heuristics"]
    for _ in range(5):
        functional.linear(x, w, ptcore.ones(8, device="cuda"))
    assert libraries.report(libraries.lt)["heuristics"] == before
    functional.linear(x[:30], w, b)
    functional.linear(x.double(), w.double(), b.double())
    assert libraries.report(libraries.lt)["heuristics"] == before + 2
    for rows in range(1, 600):                  # more shapes than there are slots
        assert functional.linear(x[:1].expand(rows, 6), w, b).shape == (rows, 8)


def test_each_stream_has_a_workspace():
    each = (32 if cuda.get_device_capability(0) >= (9, 0) else 4) * MIB
    x = ptcore.ones(4, 4, device="cuda")
    x @ x
    before = cuda.memory_allocated()
    y = x @ x
    assert cuda.memory_allocated() == before + 512      # the product alone
    side = cuda.Stream(priority=-1)                     # one that no other test has used
    side.wait_stream(cuda.current_stream())
    with cuda.stream(side):
        x @ x
        assert cuda.memory_allocated() == before + 512 + each
        functional.linear(x, x, x[0])
        assert cuda.memory_allocated() == before + 512 + each
    side.synchronize()
    assert y.cpu().tolist() == [[4.0] * 4] * 4


def test_products_of_several_streams():
    """Each stream's products write over its workspace alone."""
    x, b = ptcore.eye(8, device="cuda"), ptcore.arange(8., device="cuda")
    for _ in range(3):
        cuda.synchronize()
        streams, results = [cuda.Stream() for _ in range(4)], []
        for i, s in enumerate(2 * streams):
            with cuda.stream(s):
                results.append(functional.linear(x * (i + 1), x, b))
        cuda.synchronize()
        for i, r in enumerate(results):
            assert r.cpu().equal((i + 1) * ptcore.eye(8) + ptcore.arange(8.))
        del streams, results


def test_threads_share_handles(libraries):
    x = ptcore.ones(4, 4, device="cuda")
    results, task = [], Path("/proc/self/task")

    def work():
        results.append(functional.linear(x @ x, x, x[0]).sum().item())

    def one_thread():
        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
        while task.joinpath(str(thread.native_id)).exists():    # its own end gives the handle back
            time.sleep(0.001)

    one_thread()
    before = libraries.report(libraries.blas)["handles"]
    for _ in range(4):
        one_thread()
    assert libraries.report(libraries.blas)["handles"] == before
    assert results == [16 * 17.0] * 5


def test_ways_of_attention():
    """Those that a CUDA device has under PyTorch's names; cuDNN's is none of them."""
    kinds = ptcore.nn.attention.SDPBackend
    q = ptcore.ones(1, 1, 2, 4, device="cuda")
    for kind in (kinds.MATH, kinds.FLASH_ATTENTION, kinds.EFFICIENT_ATTENTION):
        with ptcore.nn.attention.sdpa_kernel(kind):
            assert functional.scaled_dot_product_attention(q, q, q).cpu().equal(ptcore.ones(1, 1, 2, 4))
    with ptcore.nn.attention.sdpa_kernel(kinds.CUDNN_ATTENTION), pytest.raises(RuntimeError, match="no backend"):
        functional.scaled_dot_product_attention(q, q, q)


def test_settings_reach_the_library(libraries):
    x = {name: ptcore.ones(4, 4, dtype=getattr(ptcore, name), device="cuda") for name in REAL}

    def used(name):
        """compute types of cuBLAS and cuBLASLt, the math mode, the reductions."""
        x[name] @ x[name]
        functional.linear(x[name], x[name], x[name][0])
        blas, lt = libraries.report(libraries.blas), libraries.report(libraries.lt)
        return blas["compute"], lt["compute"], blas["precision"], lt["precision"] & 0x7

    assert used("float32") == (68, 68, 0, 7)
    try:
        ptcore.set_float32_matmul_precision("high")
        assert matmul.allow_tf32
        assert used("float32") == (77, 77, 0, 7)
        assert used("float64")[:2] == (70, 70)
        matmul.allow_tf32 = False
        assert ptcore.get_float32_matmul_precision() == "highest"
        x["float32"] @ x["float32"]
        assert libraries.report(libraries.blas)["compute"] == 68
        for name, setting in (("float16", "allow_fp16_reduced_precision_reduction"),
                              ("bfloat16", "allow_bf16_reduced_precision_reduction")):
            assert used(name) == (68, 68, 0, 7)
            setattr(matmul, setting, False)
            assert used(name) == (68, 68, 16, 2)
            other = "bfloat16" if name == "float16" else "float16"
            x[other] @ x[other]
            assert libraries.report(libraries.blas)["precision"] == 0
            setattr(matmul, setting, True)
    finally:
        ptcore.set_float32_matmul_precision("highest")
        matmul.allow_fp16_reduced_precision_reduction = matmul.allow_bf16_reduced_precision_reduction = True


@pytest.mark.parametrize("n", [2, 64])
@pytest.mark.parametrize("dtype", [ptcore.float32, ptcore.float64, ptcore.bfloat16, ptcore.complex64])
def test_a_factor_of_zero_does_not_read_its_matrices(n, dtype):
    a, b = (ptcore.full((n, n), x, dtype=dtype, device="cuda") for x in (float("nan"), 1))
    v = b[0]
    for got in (ptcore.addmm(b, a, b, alpha=0), ptcore.addmm(v, a, b, alpha=0), ptcore.addmv(v, a, v, alpha=0),
                ptcore.addbmm(b, a[None], b[None], alpha=0), ptcore.baddbmm(b[None], a[None], b[None], alpha=0)):
        assert (got == 1).all()
    assert (ptcore.addmm(b * 2, a, b, beta=3, alpha=0) == 6).all() and (ptcore.addmm(a, b, b, beta=0) == n).all()


@pytest.mark.parametrize("dtype", [ptcore.int64, ptcore.uint8])
def test_factors_of_integer_products(dtype):
    x = ptcore.ones(2, 2, dtype=dtype, device="cuda")
    index = ptcore.tensor([0], device="cuda")
    for value in (float("nan"), float("inf"), -1e19):
        for call in (lambda v: ptcore.addmm(x, x, x, beta=v), lambda v: x.index_add(0, index, x[:1], alpha=v)):
            with pytest.raises(RuntimeError, match=r"value .* cannot be converted to .* without overflow"):
                call(value)
    assert (ptcore.addmm(x, x, x, beta=1.5) == 3).all() and (ptcore.addmm(x, x, x, alpha=2.5) == 5).all()
    assert x.index_add(0, index, x[:1], alpha=2.5).tolist() == [[3, 3], [1, 1]]
    assert (ptcore.addmm(x, x, x, alpha=0) == 1).all()
