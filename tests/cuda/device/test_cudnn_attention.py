"""Attention by cuDNN's graphs, where it is installed: a stand-in for it, in a process of its own, against the CPU."""
import os

import pytest
import with_cudnn

# A card's own cuDNN is compared by test_device_attention.py and test_device_convolution.py.
pytestmark = pytest.mark.skipif(os.environ.get("PTCORE_TEST_CUDA") != "standin",
                                reason="counts what the stand-in cuDNN is asked for")

COMPARE = """
from ptcore.nn.attention import SDPBackend, sdpa_kernel
attend = F.scaled_dot_product_attention
FIRST = sdpa_kernel([SDPBackend.CUDNN_ATTENTION, SDPBackend.FLASH_ATTENTION], set_priority=True)
FIRST.__enter__()

def compare(query, key, value, dtype="bfloat16", layout=lambda t: t, **options):
    ptcore.manual_seed(0)
    given = [ptcore.randn(*shape).to(getattr(ptcore, dtype)) for shape in (query, key, value)]
    results, options = [], dict(options, enable_gqa=query[1] != key[1])
    for device, kind in (("cpu", ptcore.float64), ("cuda", given[0].dtype)):
        tensors = [layout(t.to(device).to(kind)).detach().requires_grad_() for t in given]
        out = attend(*tensors, **options)
        slope = ptcore.randn(out.shape, generator=ptcore.Generator().manual_seed(1)).to(given[0].dtype)
        out.backward(layout(slope.to(device).to(kind)))
        results.append([out, *[t.grad for t in tensors]])
    for got, want in zip(results[1], results[0]):
        assert got.dtype == given[0].dtype and got.shape == want.shape
        off = (got.detach().cpu().double() - want.detach()).abs().max().item()
        assert off <= {"bfloat16": 3e-2, "float16": 4e-3}[dtype] * max(1, want.abs().max().item()), off
"""


def started(text, **environment):
    return with_cudnn.started(COMPARE + text, **environment)


def test_attention_and_its_gradients():
    """One launch each, of a plan that is made once for sizes, layout and mask."""
    lines = started("""
for options in {}, {"is_causal": True}, {"scale": 0.3}:
    compare((2, 4, 70, 16), (2, 4, 80, 16), (2, 4, 80, 24), **options)
    print(launched(), dnn.standin_cudnn_plans())
compare((2, 4, 90, 16), (2, 2, 40, 16), (2, 2, 40, 16), is_causal=True)
compare((1, 3, 40, 64), (1, 3, 65, 64), (1, 3, 65, 64), dtype="float16")
print(launched(), dnn.standin_cudnn_plans())
""")
    assert lines == ["2 2", "4 4", "6 4", "10 8"]


def test_layouts():
    """Heads behind positions, as projections leave them, without a copy; what no pack fits is left to own kernels."""
    assert started("""
compare((2, 4, 70, 16), (2, 4, 80, 16), (2, 4, 80, 16), layout=lambda t: t.transpose(1, 2).contiguous().transpose(1, 2))
print(launched())
compare((1, 2, 70, 16), (1, 2, 80, 16), (1, 2, 80, 16), layout=lambda t: t.transpose(2, 3).contiguous().transpose(2, 3))
compare((1, 2, 70, 16), (1, 2, 80, 16), (1, 2, 80, 16), layout=lambda t: ptcore.cat([t, t[..., :1]], -1)[..., :-1])
compare((1, 2, 70, 16), (1, 2, 80, 16), (1, 2, 80, 16), layout=lambda t: ptcore.cat([t[..., :4], t], -1)[..., 4:])
print(launched())
""") == ["2", "2"]


def test_what_is_left_to_own_kernels():
    """Masks, dropout, few queries, other dtypes and heads, and everything where it is not allowed."""
    lines = started("""
shape = (1, 2, 40, 16)
mask = ptcore.ones(40, 40, dtype=ptcore.bool).tril()
x = ptcore.randn(shape, dtype=ptcore.bfloat16, device="cuda")
attend(x, x, x, attn_mask=mask.cuda())
attend(x, x, x, dropout_p=0.5)
attend(x, x, x, scale=-1.)
attend(x[:, :, :1], x, x)
attend(x[..., :12], x[..., :12], x)
attend(x.float(), x.float(), x.float())
attend(x[:, :, :0], x, x), attend(x, x[:, :, :0], x[:, :, :0])
print(launched())
backends = ptcore.backends
backends.cuda.enable_cudnn_sdp(False)
attend(x, x, x)
backends.cuda.enable_cudnn_sdp(True)
for chosen in SDPBackend.FLASH_ATTENTION, [SDPBackend.CUDNN_ATTENTION, SDPBackend.MATH]:
    with sdpa_kernel(chosen):
        attend(x, x, x)
with sdpa_kernel([SDPBackend.MATH, SDPBackend.CUDNN_ATTENTION], set_priority=True):
    attend(x, x, x)
with backends.cudnn.flags(enabled=False):
    attend(x, x, x)
print(launched())
with sdpa_kernel(SDPBackend.CUDNN_ATTENTION):
    attend(x, x, x)
print(launched())
dnn.standin_cudnn_version(91300)
attend(x, x, x)
dnn.standin_cudnn_version(92100)
dnn.standin_cudnn_decline(1)
compare((1, 2, 36, 16), (1, 2, 36, 16), (1, 2, 36, 16))
print(launched())
""")
    assert lines == ["0", "0", "1", "1"]


def test_where_nothing_is_said():
    """Own kernels."""
    assert started("""
FIRST.__exit__(None, None, None)
compare((1, 2, 40, 16), (1, 2, 40, 16), (1, 2, 40, 16))
print(launched())
""") == ["0"]


def test_own_gradients_of_its_forward():
    """Both halves keep the same logarithms of sums: where a graph asks for scores' gradients, or none is allowed."""
    assert started("""
ptcore.manual_seed(0)
given = [ptcore.randn(1, 2, 40, 16).to(ptcore.bfloat16) for _ in range(3)]
grads = []
for back in (True, False):
    tensors = [t.cuda().requires_grad_() for t in given]
    out = attend(*tensors, is_causal=True)
    ptcore.backends.cuda.enable_cudnn_sdp(back)
    out.float().square().sum().backward()
    ptcore.backends.cuda.enable_cudnn_sdp(True)
    grads.append([t.grad.float() for t in tensors])
print(launched(), max((a - b).abs().max().item() for a, b in zip(*grads)) < 0.1)
""") == ["3 True"]


@pytest.mark.parametrize(("setting", "choice"), [
    ("", 2), ("ptcore.backends.cudnn.deterministic = True", 3), ("ptcore.use_deterministic_algorithms(True)", 3)])
def test_the_plan(setting, choice):
    """The first that can be built, and, where that is asked for, that has the same results each time."""
    assert started(f"""
{setting}
compare((1, 2, 40, 16), (1, 2, 40, 16), (1, 2, 40, 16))
print(dnn.standin_cudnn_choice())
""") == [str(choice)]


def test_plans_that_are_dropped():
    """At most 512 are kept; one that a graph needs stays."""
    assert started("""
def call(n):
    x = ptcore.ones(1, 1, n, 8, dtype=ptcore.bfloat16, device="cuda")
    return x, attend(x, x, x)
x, _ = call(40)
graph = ptcore.cuda.CUDAGraph()
with ptcore.cuda.graph(graph):
    out = attend(x, x, x)
for n in range(41, 41 + 512):
    call(n)
print(launched(), dnn.standin_cudnn_plans())
call(41)            # dropped, and made again
call(41 + 511)
print(launched(), dnn.standin_cudnn_plans())
graph.replay()
print(out.float().mean().item())
""") == ["514 513", "516 514", "1.0"]


def test_threads():
    """They share a plan, and run it one at a time, each with its own handle."""
    assert started("""
import threading
x = ptcore.randn(1, 2, 40, 16, dtype=ptcore.bfloat16, device="cuda")
want = attend(x, x, x)
results = []
def work():
    for _ in range(3):
        results.append(attend(x, x, x))
    ptcore.cuda.synchronize()
threads = [threading.Thread(target=work) for _ in range(2)]
for t in threads:
    t.start()
for t in threads:
    t.join()
print(launched(), dnn.standin_cudnn_plans(), all(r.equal(want) for r in results))
""") == ["7 1 True"]


def test_graphs():
    """A captured launch runs again with each replay; under a capture no plan is made."""
    assert started("""
x = ptcore.randn(1, 2, 40, 16, dtype=ptcore.bfloat16, device="cuda")
graph = ptcore.cuda.CUDAGraph()
with ptcore.cuda.graph(graph):
    attend(x, x, x)
print(launched(), dnn.standin_cudnn_plans())
attend(x, x, x)
graph = ptcore.cuda.CUDAGraph()
with ptcore.cuda.graph(graph):
    out = attend(x, x, x)
print(launched(), dnn.standin_cudnn_plans())
x.copy_(ptcore.randn(1, 2, 40, 16).to(x.dtype))
graph.replay()
want = attend(x.cpu().double(), x.cpu().double(), x.cpu().double())
print((out.cpu().double() - want).abs().max().item() < 0.03)
""") == ["0 0", "2 1", "True"]


@pytest.mark.parametrize(("capability", "launches"), [(80, "0"), (90, "2"), (100, "2"), (120, "0")])
def test_devices(capability, launches):
    """Those whose products by tensor cores own kernels do not have."""
    assert started("""
compare((1, 2, 40, 16), (1, 2, 40, 16), (1, 2, 40, 16))
print(launched())
""", PTCORE_STANDIN_CAPABILITY=str(capability)) == [launches]
