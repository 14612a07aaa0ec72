"""Normalisation layers against torch.nn: outputs, gradients, running statistics, states, texts."""
import numpy as np
import pytest

import ptcore as pt
from ptcore import nn

torch = pytest.importorskip("torch")

pytestmark = pytest.mark.parity

LAYERS = [
    ("BatchNorm1d", (3,), {}, (6, 3)),
    ("BatchNorm1d", (3,), {"momentum": None, "eps": 1e-3}, (4, 3, 20)),
    ("BatchNorm2d", (4,), {"affine": False}, (3, 4, 5, 6)),
    ("BatchNorm2d", (4,), {"track_running_stats": False}, (3, 4, 2, 3)),
    ("BatchNorm3d", (2,), {"momentum": 0.4}, (2, 2, 3, 4, 5)),
    ("InstanceNorm1d", (3,), {}, (2, 3, 8)),
    ("InstanceNorm2d", (3,), {"affine": True, "track_running_stats": True}, (2, 3, 5, 6)),
    ("InstanceNorm3d", (2,), {"affine": True}, (2, 2, 3, 4, 2)),
    ("InstanceNorm2d", (2,), {}, (2, 5, 6)),
    ("GroupNorm", (2, 6), {}, (3, 6, 5)),
    ("GroupNorm", (3, 6), {"affine": False}, (3, 6)),
    ("GroupNorm", (2, 4), {"bias": False}, (2, 4, 6, 7)),
    ("RMSNorm", (5,), {}, (3, 4, 5)),
    ("RMSNorm", ((4, 5),), {"eps": 1e-3, "elementwise_affine": False}, (3, 4, 5)),
    ("LocalResponseNorm", (3,), {"alpha": 0.3, "k": 2.0}, (2, 5, 4, 3)),
    ("LocalResponseNorm", (2,), {}, (2, 5, 4)),
]


def both(name, args, options):
    ours, theirs = getattr(nn, name)(*args, **options), getattr(torch.nn, name)(*args, **options)
    rng = np.random.default_rng(3)
    for (key, p), (other, q) in zip(ours.named_parameters(), theirs.named_parameters(), strict=True):
        assert key == other
        values = rng.normal(size=tuple(q.shape)).astype(np.float32)
        p.data.copy_(pt.from_numpy(values))
        q.data.copy_(torch.from_numpy(values))
    return ours, theirs


@pytest.mark.parametrize(("name", "args", "options", "shape"), LAYERS)
def test_layer(name, args, options, shape):
    ours, theirs = both(name, args, options)
    assert repr(ours) == repr(theirs)
    assert list(ours.state_dict()) == list(theirs.state_dict())
    for step in range(5):
        if step == 3:
            ours.eval(), theirs.eval()
        x = np.random.default_rng(step).normal(1, 2, size=shape).astype(np.float32)
        a, b = pt.tensor(x, requires_grad=True), torch.tensor(x, requires_grad=True)
        out, expected = ours(a), theirs(b)
        np.testing.assert_allclose(out.detach().numpy(), expected.detach().numpy(), rtol=1e-4, atol=1e-5)
        g = np.random.default_rng(step + 9).normal(size=out.shape).astype(np.float32)
        out.backward(pt.tensor(g))
        expected.backward(torch.tensor(g))
        np.testing.assert_allclose(a.grad.numpy(), b.grad.numpy(), rtol=1e-3, atol=1e-5)
        for key, value in theirs.state_dict().items():
            np.testing.assert_allclose(ours.state_dict()[key].numpy(), value.numpy(), rtol=1e-4, atol=1e-5)
    for (key, p), (_, q) in zip(ours.named_parameters(), theirs.named_parameters(), strict=True):
        np.testing.assert_allclose(p.grad.numpy(), q.grad.numpy(), rtol=1e-3, atol=1e-4, err_msg=key)


@pytest.mark.parametrize("dtype", ["bfloat16", "float16", "float64"])
@pytest.mark.parametrize("name", ["batch_norm", "group_norm", "instance_norm", "rms_norm"])
def test_dtypes(name, dtype):
    x = np.random.default_rng(0).normal(size=(4, 6, 9))
    results = []
    for lib in (pt, torch):
        t, f = lib.tensor(x).to(getattr(lib, dtype)), getattr(lib.nn.functional, name)
        out = {"batch_norm": lambda f=f, t=t: f(t, None, None, training=True), "group_norm": lambda f=f, t=t: f(t, 3),
               "instance_norm": lambda f=f, t=t: f(t), "rms_norm": lambda f=f, t=t: f(t, (9,))}[name]()
        assert str(out.dtype).endswith(dtype)
        results.append(out.double().numpy())
    atol = {"bfloat16": 2e-2, "float16": 2e-3, "float64": 1e-12}[dtype]
    np.testing.assert_allclose(*results, atol=atol, rtol=1e-2 if atol > 1e-9 else 1e-10)


def test_signatures():
    import inspect
    for name in ("batch_norm", "instance_norm", "group_norm", "rms_norm", "local_response_norm"):
        ours, theirs = (inspect.signature(getattr(lib.nn.functional, name)) for lib in (pt, torch))
        assert [(p.name, p.default) for p in ours.parameters.values()] == [
            (p.name, p.default) for p in theirs.parameters.values()]
    for name in {case[0] for case in LAYERS}:
        ours, theirs = (inspect.signature(getattr(lib.nn, name)) for lib in (pt, torch))
        assert list(ours.parameters) == list(theirs.parameters), name


@pytest.mark.parametrize("shape", [(1, 3), (1, 1, 3), (2, 1, 3), (1,), (1, 1)])
@pytest.mark.parametrize("recorded", [False, True])
def test_layer_norm_of_sizes_of_one(shape, recorded):
    """Dims of size 1 before the normalised one; the statistics alone do not tell which is which."""
    grads = []
    for lib in (pt, torch):
        x, w, b = (lib.tensor(np.random.default_rng(k).normal(size=s), requires_grad=True)
                   for k, s in enumerate((shape, shape[-1:], shape[-1:])))
        y = lib.nn.functional.layer_norm(x, shape[-1:], w, b)
        grads.append(lib.autograd.grad((y ** 3).sum(), (x, w, b), create_graph=recorded))
    for a, c in zip(*grads, strict=True):
        assert tuple(a.shape) == tuple(c.shape)
        np.testing.assert_allclose(a.detach().numpy(), c.detach().numpy(), rtol=1e-9, atol=1e-12)
