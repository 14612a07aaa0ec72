"""Convolution by cuDNN, where it is installed: a stand-in for it, in a process of its own, against the CPU."""
import os

import pytest
import with_cudnn

# A card's own cuDNN is compared by test_device_attention.py and test_device_convolution.py.
pytestmark = pytest.mark.skipif(os.environ.get("PTCORE_TEST_CUDA") != "standin",
                                reason="counts what the stand-in cuDNN is asked for")

COMPARE = """
def compare(function, *shapes, dtype="float32", tolerance=2e-5, layout=lambda t: t):
    results = []
    ptcore.manual_seed(0)
    given = [ptcore.randn(*s).to(getattr(ptcore, dtype)) for s in shapes]
    for device in ("cpu", "cuda"):
        own = ptcore.float64 if device == "cpu" else given[0].dtype
        tensors = [layout(t.to(device).to(own)).detach().requires_grad_() for t in given]
        out = function(*tensors)
        out.sum().backward() if device == "cpu" else out.float().sum().backward()
        results.append([out, *[t.grad for t in tensors]])
    for got, want in zip(results[1], results[0]):
        assert got.dtype == getattr(ptcore, dtype)
        off = (got.detach().cpu().double() - want.detach()).abs().max().item()
        assert off <= tolerance * max(1, want.abs().max().item()), off
"""


def started(text, **environment):
    return with_cudnn.started(COMPARE + text, **environment)


def test_convolutions_and_their_gradients():
    """By cuDNN alone: three launches each, and a plan for each kind."""
    lines = started("""
before = dnn.standin_cudnn_launched()
compare(lambda x, w, b: F.conv2d(x, w, b, stride=2, padding=1), (2, 6, 9, 8), (10, 6, 3, 3), (10,))
print(dnn.standin_cudnn_launched() - before, dnn.standin_cudnn_choices())
compare(lambda x, w, b: F.conv2d(x, w, b, stride=2, padding=1), (2, 6, 9, 8), (10, 6, 3, 3), (10,))
print(dnn.standin_cudnn_launched() - before, dnn.standin_cudnn_choices())
compare(lambda x, w: F.conv2d(x, w, dilation=(2, 1), groups=2), (2, 8, 9, 8), (12, 4, 3, 2))
compare(lambda x, w, b: F.conv1d(x, w, b, padding=2), (2, 6, 11), (10, 6, 3), (10,))
compare(lambda x, w: F.conv3d(x, w, padding=(0, 1, 1)), (1, 5, 4, 5, 6), (9, 5, 2, 3, 3))
compare(lambda x, w, b: F.conv_transpose2d(x, w, b, stride=2, output_padding=1), (2, 10, 4, 5), (10, 9, 3, 3), (9,))
compare(lambda x, w: F.conv2d(x, w, padding=1), (2, 6, 9, 8), (10, 6, 3, 3),
        layout=lambda t: t.transpose(2, 3).contiguous().transpose(2, 3))
print(dnn.standin_cudnn_launched() - before)
""")
    assert lines == ["3 3", "6 3", "21"]


@pytest.mark.parametrize(("dtype", "tolerance"), [("float64", 1e-12), ("float16", 2e-3), ("bfloat16", 2e-2)])
def test_dtypes(dtype, tolerance):
    assert started(f"""
compare(lambda x, w, b: F.conv2d(x, w, b, padding=1), (2, 6, 9, 8), (10, 6, 3, 3), (10,), dtype={dtype!r},
        tolerance={tolerance})
print(dnn.standin_cudnn_launched())
""") == ["3"]


def test_what_is_left_to_own_kernels():
    """Products of matrices, what cuDNN has no algorithm for, and everything where it is not enabled."""
    lines = started("""
ptcore.backends.cudnn.allow_tf32 = False
compare(lambda x, w: F.conv2d(x, w), (2, 6, 9, 8), (10, 6, 1, 1))
print(dnn.standin_cudnn_launched())
with ptcore.backends.cudnn.flags(enabled=False, allow_tf32=False):
    compare(lambda x, w: F.conv2d(x, w, padding=1), (2, 6, 9, 8), (10, 6, 3, 3))
print(dnn.standin_cudnn_launched())
dnn.standin_cudnn_decline(1)
compare(lambda x, w, b: F.conv2d(x, w, b, padding=1), (2, 6, 7, 8), (10, 6, 3, 3), (10,))
print(dnn.standin_cudnn_launched())
dnn.standin_cudnn_decline(0)
ptcore.use_deterministic_algorithms(True)
compare(lambda x, w: F.conv2d(x, w, padding=1), (2, 6, 6, 8), (10, 6, 3, 3))
print(dnn.standin_cudnn_launched())
""")
    assert lines == ["2", "2", "2", "5"]        # of a kernel of one place, both gradients


def test_where_there_is_no_room():
    """The fastest algorithm whose workspace there is computes."""
    assert started("""
def used(shape):
    compare(lambda x, w: F.conv2d(x, w, padding=1), shape, (10, 6, 3, 3))
    return dnn.standin_cudnn_algorithm(), launched()
print(*used((2, 6, 9, 8)))
dnn.standin_cudnn_room(ctypes.c_size_t(1 << 40))
print(*used((2, 6, 7, 8)))
""") == ["3 3", "6 6"]


def test_under_a_capture():
    """cuDNN does not begin there: own kernels compute, and the capture goes on."""
    assert started("""
x, w = ptcore.randn(2, 6, 9, 8, device="cuda"), ptcore.randn(10, 6, 3, 3, device="cuda")
def run():
    g = ptcore.cuda.CUDAGraph()
    with ptcore.cuda.graph(g):
        y = F.conv2d(x, w, padding=1)
    g.replay()
    want = F.conv2d(x.cpu().double(), w.cpu().double(), padding=1)
    return launched(), (y.cpu() - want).abs().max().item() < 2e-2
print(*run())
F.conv2d(x, w, padding=1)
print(*run())
""") == ["0 True", "2 True"]


def test_blocking_calls_name_the_op():
    """With CUDA_LAUNCH_BLOCKING a failure of cuDNN's kernel is raised by the call, not by a later one."""
    assert started("""
x, w = ptcore.randn(2, 6, 9, 8, device="cuda"), ptcore.randn(10, 6, 3, 3, device="cuda")
F.conv2d(x, w, padding=1), ptcore.cuda.synchronize()
fail_next(b"cuStreamSynchronize", 719)
print(str(failure(lambda: F.conv2d(x, w, padding=1)))[:19])
""", CUDA_LAUNCH_BLOCKING="1") == ["conv2d: convolution"]


def test_settings_and_version():
    assert started("""
cudnn = ptcore.backends.cudnn
print(cudnn.is_available(), cudnn.version(), cudnn.is_acceptable(ptcore.ones(1, device="cuda")))
print(cudnn.is_acceptable(ptcore.ones(1)), cudnn.is_acceptable(ptcore.ones(1, dtype=ptcore.int32, device="cuda")))
""") == ["True 92800 True", "False False"]


def test_a_library_that_cannot_be_used():
    """A file that is none, and one without the functions: a warning. Where there is none, nothing is said."""
    lines = started("""
import warnings
for path in ("/nowhere/lib.so", libraries.library_path("cublas")):
    libraries.set_library("cudnn", path)
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        print(ptcore.backends.cudnn.is_available(), len(said), str(said[0].message).split(": ", 2)[-1])
libraries.set_library("cudnn", "")
with warnings.catch_warnings():
    warnings.simplefilter("error")
    print(ptcore.backends.cudnn.is_available(), ptcore.backends.cudnn.version())
    ptcore.backends.cudnn.allow_tf32 = False
    compare(lambda x, w: F.conv2d(x, w, padding=1), (2, 6, 9, 8), (10, 6, 3, 3))
""")
    assert "pip install 'ptcore[cuda13-dnn]' (it is not used)" in lines[0]
    assert "has no cudnnCreate; an older version? pip install --upgrade 'ptcore[cuda13-dnn]' (it is not" in lines[1]
    assert [line[:7] for line in lines[:2]] == ["False 1", "False 1"]
    assert lines[2] == "False None"
