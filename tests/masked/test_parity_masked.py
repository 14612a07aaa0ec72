"""Masked functions and MaskedTensor against PyTorch's."""
import warnings

import numpy as np
import pytest

import ptcore as pt
from ptcore import masked

torch = pytest.importorskip("torch")
with warnings.catch_warnings():
    warnings.simplefilter("ignore", UserWarning)
    from torch.masked import _ops as functions
    from torch.masked import as_masked_tensor
    from torch.masked import masked_tensor as theirs

X = np.random.default_rng(0).normal(size=(3, 4))
MASK = np.array([[True, False, True, True], [False, False, False, False], [True, True, True, True]])
CALLS = {
    "sum": [(), (1,), ((0, 1),), (-1, True)], "prod": [(), (1,), ((0, 1),)], "amax": [(), (1,)],
    "amin": [(), ((0, 1),)],
    "mean": [(), (0,), (1,)], "median": [(), (0,)], "norm": [(), (3, 1), (-np.inf, 0), (0, 1)],
    "var": [(), (1,), (1, False), ((0, 1), True)], "std": [(), (1, False)], "logsumexp": [(), (1,)],
    "argmax": [(), (1,)], "argmin": [(), (0,)], "cumsum": [(1,)], "cumprod": [(0,)], "softmax": [(1,)],
    "log_softmax": [(1,)], "softmin": [(0,)], "normalize": [(2, 1), (1, 0)]}


def close(got, want):
    assert str(got.dtype).rpartition(".")[2] == str(want.dtype).rpartition(".")[2]
    assert tuple(got.shape) == tuple(want.shape)
    np.testing.assert_allclose(got.detach().numpy(), want.detach().numpy(), rtol=1e-6)


@pytest.mark.parametrize("name", CALLS)
@pytest.mark.parametrize("dtype", ["float64", "float32", "int64", "uint8"])
def test_functions(name, dtype):
    if dtype[0] != "f" and name in ("mean", "norm", "median", "normalize", "softmax", "log_softmax", "softmin"):
        args = () if name == "median" else CALLS[name][-1]
        for lib, module in ((torch, functions), (pt, masked)):
            with pytest.raises((ValueError, RuntimeError), match=r"\w"):
                getattr(module, name)(lib.tensor(X).to(getattr(lib, dtype)), *args, mask=lib.tensor(MASK))
        return
    x = np.abs(X * 10).astype(dtype)
    for args in CALLS[name]:
        given = {"keepdim": True} if args == (-1, True) else {}
        args = args[:1] if given else args
        for mask in (None, MASK, MASK[0]):
            def of(lib, module, mask=mask, args=args, given=given):
                wanted = None if mask is None else lib.tensor(mask)
                return getattr(module, name)(lib.tensor(x), *args, mask=wanted, **given)
            close(of(pt, masked), of(torch, functions))


@pytest.mark.filterwarnings("ignore:.*[Mm]asked:UserWarning")
@pytest.mark.parametrize("expression", [
    lambda lib, m: m.sin() * 2 + m, lambda lib, m: m.exp().sum(0), lambda lib, m: m.sum(), lambda lib, m: m.mean(1),
    lambda lib, m: m.amax(1), lambda lib, m: m.prod(0), lambda lib, m: m.var(1), lambda lib, m: m[1:].t(),
    lambda lib, m: lib.cat([m, m], 1).transpose(0, 1), lambda lib, m: m.unsqueeze(1).expand(3, 2, 4),
    lambda lib, m: (m > 0).all(1), lambda lib, m: lib.stack([m, m]).view(6, 4), lambda lib, m: m.abs().sqrt().std(0),
    lambda lib, m: lib.where(lib.tensor(MASK), m, m * 2), lambda lib, m: m.clamp(-1, 1) < 0.5])
def test_masked_tensors(expression):
    want = expression(torch, theirs(torch.tensor(X), torch.tensor(MASK)))
    got = expression(pt, masked.masked_tensor(pt.tensor(X), pt.tensor(MASK)))
    mask = want.get_mask().numpy()
    np.testing.assert_array_equal(got.get_mask().numpy(), mask)
    np.testing.assert_allclose(got.get_data().numpy()[mask], want.get_data().numpy()[mask], rtol=1e-12)
    assert repr(got) == repr(want)


@pytest.mark.filterwarnings("ignore:.*[Mm]asked:UserWarning")
def test_gradients():
    for function in (lambda m: m.exp().sum(), lambda m: (m * m).mean(), lambda m: m.sin().amax()):
        x, y = torch.tensor(X, requires_grad=True), pt.tensor(X, requires_grad=True)
        function(as_masked_tensor(x, torch.tensor(MASK))).backward()
        function(masked.as_masked_tensor(y, pt.tensor(MASK))).backward()
        np.testing.assert_allclose(y.grad.numpy(), x.grad.to_tensor(0).numpy(), rtol=1e-12)


@pytest.mark.filterwarnings("ignore:.*[Mm]asked:UserWarning")
@pytest.mark.parametrize("call", [
    lambda lib, m, make: m + make(lib.tensor(X), ~lib.tensor(MASK)), lambda lib, m, make: make(m, lib.tensor(MASK)),
    lambda lib, m, make: make(lib.tensor(X), lib.tensor(X)),
    lambda lib, m, make: make(lib.tensor(X), lib.tensor(MASK[0])),
    lambda lib, m, make: m[0, 1].item(), lambda lib, m, make: lib.where(lib.tensor(MASK)[:2], m, m)])
def test_errors(call):
    with pytest.raises((ValueError, TypeError, RuntimeError)) as error:
        call(torch, theirs(torch.tensor(X), torch.tensor(MASK)), theirs)
    with pytest.raises(error.type):
        call(pt, masked.masked_tensor(pt.tensor(X), pt.tensor(MASK)), masked.masked_tensor)
