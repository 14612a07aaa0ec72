"""Parametrisation and normalised weights against torch: state dicts, values, gradients, errors."""
import copy
import pickle
import re

import numpy as np
import pytest

import ptcore as pt
import ptcore.nn.utils.parametrizations

torch = pytest.importorskip("torch")
import torch.nn.utils.parametrizations  # noqa: E402, F811

pytestmark = pytest.mark.parity

BOTH = (pt, torch)
RNG = np.random.default_rng(0)


def filled(lib, module):
    """The module with the same parameters and buffers in both libraries."""
    rng = np.random.default_rng(3)
    with lib.no_grad():
        for tensor in [*module.parameters(), *module.buffers()]:
            tensor.copy_(lib.tensor(rng.normal(size=tuple(tensor.shape))))
    return module


def linear(lib, *sizes):
    return filled(lib, lib.nn.Linear(*(sizes or (3, 3))).double())


def numbers(state):
    return {key: value.detach().numpy() for key, value in state.items()}


def same(got, want, tol=1e-10):
    assert list(got) == list(want)
    for key in want:
        np.testing.assert_allclose(got[key], want[key], rtol=tol, atol=tol, err_msg=key)


def both(program, tol=1e-10):
    """Run a program in both libraries; it returns a dict of arrays, texts and tensors."""
    got, want = ({key: value.detach().numpy() if hasattr(value, "detach") else value
                  for key, value in program(lib).items()} for lib in BOTH)
    assert list(got) == list(want)
    for key, value in want.items():
        if isinstance(value, np.ndarray):
            np.testing.assert_allclose(got[key], value, rtol=tol, atol=tol, err_msg=key)
        else:
            assert got[key] == value, key


ERRORS = (RuntimeError, TypeError, ValueError, KeyError, IndexError, AttributeError, AssertionError)


def raises_alike(program, says):
    """The class is torch's; the text says what is wrong with which argument."""
    with pytest.raises(ERRORS) as theirs:
        program(torch)
    with pytest.raises(theirs.type, match=re.escape(says)):
        program(pt)


def said(texts, cases):
    """Cases with what is said of them."""
    return [*zip(cases, texts, strict=True)]


def kinds(lib):
    class Symmetric(lib.nn.Module):
        def forward(self, x):
            return x.triu() + x.triu(1).T

        def right_inverse(self, a):
            return a.triu()

    class Scaled(lib.nn.Module):
        def __init__(self):
            super().__init__()
            self.scale = lib.nn.Parameter(lib.tensor(2.0, dtype=lib.float64))

        def forward(self, x):
            return x * self.scale

    class RankOne(lib.nn.Module):
        def forward(self, x, y):
            return x.unsqueeze(-1) @ y.unsqueeze(-2)

        def right_inverse(self, z):
            return z[:, 0].clone(), z[0].clone()

    class Returns(lib.nn.Module):
        def __init__(self, forward=lambda x: x, back=None):
            super().__init__()
            self.made = forward
            if back is not None:
                self.right_inverse = back

        def forward(self, *x):
            return self.made(*x)

    return Symmetric, Scaled, RankOne, Returns


def test_one_and_two_parametrisations():
    def program(lib):
        P = lib.nn.utils.parametrize
        Symmetric, Scaled, _, _ = kinds(lib)
        m = linear(lib)
        weight = m.weight
        assert P.register_parametrization(m, "weight", Symmetric()) is m
        assert m.parametrizations.weight.original is weight
        P.register_parametrization(m, "weight", Scaled())
        assert P.type_before_parametrizations(m) is lib.nn.Linear
        y = m(lib.ones(2, 3, dtype=lib.float64))
        (y * y).sum().backward()
        result = {"y": y, "weight": m.weight, "repr": repr(m), "class": type(m).__name__,
                  **{f"grad of {name}": p.grad for name, p in m.named_parameters()},
                  **{f"state of {name}": v for name, v in m.state_dict().items()},
                  "is": [P.is_parametrized(m), P.is_parametrized(m, "weight"), P.is_parametrized(m, "bias")],
                  "unsafe": m.parametrizations.weight.unsafe, "ntensors": m.parametrizations.weight.ntensors}
        with P.cached():
            assert m.weight is m.weight
        assert m.weight is not m.weight
        P.remove_parametrizations(m, "weight")
        assert m.weight is weight
        assert not P.is_parametrized(m)
        assert not hasattr(m, "parametrizations")
        assert type(m) is lib.nn.Linear
        return {**result, "left": m.weight, "keys": list(m.state_dict())}

    both(program)


def test_assigning_and_removing_without_the_parametrisation():
    def program(lib):
        P = lib.nn.utils.parametrize
        Symmetric = kinds(lib)[0]
        m = linear(lib)
        P.register_parametrization(m, "weight", Symmetric())
        P.register_parametrization(m, "bias", kinds(lib)[1]())
        a = lib.tensor(RNG_A)
        m.weight = a + a.T
        result = {"weight": m.weight, "original": m.parametrizations.weight.original}
        P.remove_parametrizations(m, "weight", leave_parametrized=False)
        assert P.is_parametrized(m, "bias")
        return {**result, "left": m.weight, "class": type(m).__name__, "keys": list(m.state_dict())}

    RNG_A = RNG.normal(size=(3, 3))
    both(program)


def test_several_originals():
    def program(lib):
        P = lib.nn.utils.parametrize
        m = linear(lib)
        P.register_parametrization(m, "weight", kinds(lib)[2](), unsafe=False)
        m.weight.sum().backward()
        result = {**{f"grad of {n}": p.grad for n, p in m.named_parameters() if p.grad is not None},
                  **{f"state of {n}": v for n, v in m.state_dict().items()}}
        raises = []
        try:
            P.remove_parametrizations(m, "weight", leave_parametrized=False)
        except ValueError as error:
            raises.append(type(error).__name__)
        m.weight = lib.outer(lib.arange(3.0), lib.ones(3)).double()
        result["assigned"] = m.weight
        P.remove_parametrizations(m, "weight")
        return {**result, "raises": raises, "left": m.weight, "leaf": m.weight.is_leaf, "keys": list(m.state_dict())}

    both(program)


def test_buffers_copies_and_pickles():
    def program(lib):
        P = lib.nn.utils.parametrize
        m = filled(lib, lib.nn.BatchNorm1d(3).double())
        P.register_parametrization(m, "running_mean", kinds(lib)[1]())
        other = copy.deepcopy(m)
        with lib.no_grad():
            other.parametrizations.running_mean[0].scale.fill_(5)
        try:
            pickle.dumps(m)
        except RuntimeError as error:
            raised = type(error).__name__
        return {"one": m.running_mean, "other": other.running_mean, "raised": raised,
                "buffers": [n for n, _ in m.named_buffers()], "parameters": [n for n, _ in m.named_parameters()]}

    both(program)


def test_a_copy_stands_on_its_own():
    P = pt.nn.utils.parametrize
    m = P.register_parametrization(linear(pt), "weight", kinds(pt)[0]())
    other = copy.deepcopy(m)
    P.remove_parametrizations(m, "weight")
    assert P.is_parametrized(other, "weight")
    assert pt.equal(other.weight, m.weight)
    with P.cached():
        assert other.weight is not copy.deepcopy(other).weight


def test_kept_values_are_those_of_living_modules():
    P = pt.nn.utils.parametrize
    with P.cached():
        for number in range(20):        # each module may get the address of the one before
            m = pt.nn.Linear(2, 2)
            pt.nn.init.constant_(m.weight, number)
            P.register_parametrization(m, "weight", kinds(pt)[0]())
            assert pt.equal(m.weight, m.parametrizations.weight())
            del m


def test_transfer():
    def program(lib):
        P = lib.nn.utils.parametrize
        Symmetric, Scaled, RankOne, _ = kinds(lib)
        a, b, c = linear(lib), linear(lib), linear(lib)
        P.register_parametrization(a, "weight", Symmetric())
        P.register_parametrization(a, "bias", Scaled())
        assert P.transfer_parametrizations_and_params(a, b) is b
        P.transfer_parametrizations_and_params(a, c, "weight")
        d, e = linear(lib), lib.nn.Identity()
        P.register_parametrization(d, "weight", RankOne())
        P.transfer_parametrizations_and_params(d, e)
        return {"weight": b.weight, "bias": b.bias, "keys": list(b.state_dict()), "others": list(c.state_dict()),
                "new": list(e.state_dict()), "value": e.weight,
                "shared": b.parametrizations.bias[0] is a.parametrizations.bias[0]}

    both(program)


SAID_ERRORS = [
    "register_parametrization: Module 'Linear(in_features=3, out_features=3, bias=True)' does",
    "register_parametrization: a parametrization may not change the shape of the tensor,",
    "register_parametrization: a parametrization may not change the dtype of the tensor,",
    "register_parametrization: A parametrization must return a tensor. Got int.",
    "register_parametrization: 'right_inverse' must return a Tensor or a Sequence of tensors",
    "register_parametrization: When `right_inverse` outputs one tensor, it may not change the",
    "register_parametrization: 'right_inverse' must return a Tensor or a Sequence of tensors",
    "remove_parametrizations: Module Linear(in_features=3, out_features=3, bias=True) does not",
    "parametrization Returns does not implement right_inverse.",
    "register_parametrization: a parametrization may not change the shape of the tensor,",
    "register_parametrization: parametrization.right_inverse may not change the shape of the",
    "register_parametrization: parametrization.right_inverse must return a tensor. Got int.",
    "ParametrizationList requires one or more modules."]


@pytest.mark.parametrize(("case", "says"), said(SAID_ERRORS, [
    lambda lib, P, R: P.register_parametrization(linear(lib), "nothing", R()),
    lambda lib, P, R: P.register_parametrization(linear(lib), "weight", R(lambda x: x[0])),
    lambda lib, P, R: P.register_parametrization(linear(lib), "weight", R(lambda x: x.float())),
    lambda lib, P, R: P.register_parametrization(linear(lib), "weight", R(lambda x: 3)),
    lambda lib, P, R: P.register_parametrization(linear(lib), "weight", R(back=lambda x: 3)),
    lambda lib, P, R: P.register_parametrization(linear(lib), "weight", R(back=lambda x: x.float())),
    lambda lib, P, R: P.register_parametrization(linear(lib), "weight", R(lambda *x: x[0], back=lambda x: [x, 3])),
    lambda lib, P, R: P.remove_parametrizations(linear(lib), "weight"),
    lambda lib, P, R: setattr(P.register_parametrization(linear(lib), "weight", R()), "weight", lib.zeros(3, 3)),
    lambda lib, P, R: P.register_parametrization(P.register_parametrization(linear(lib), "weight", R()), "weight",
                                                 R(lambda x: x[0])),
    lambda lib, P, R: P.register_parametrization(P.register_parametrization(linear(lib), "weight", R()), "weight",
                                                 R(back=lambda x: x[0])),
    lambda lib, P, R: P.register_parametrization(P.register_parametrization(linear(lib), "weight", R()), "weight",
                                                 R(back=lambda x: 3)),
    lambda lib, P, R: P.ParametrizationList([], linear(lib).weight),
]))  # fmt: skip
def test_errors(case, says):
    raises_alike(lambda lib: case(lib, lib.nn.utils.parametrize, kinds(lib)[3]), says)


def layers(lib):
    nn = lib.nn
    return [nn.Linear(4, 3), nn.Conv2d(2, 3, 2), nn.ConvTranspose1d(2, 3, 2)]


@pytest.mark.parametrize("which", range(3))
@pytest.mark.parametrize("dim", [0, 1, None])
def test_weight_norm(which, dim):
    def program(lib):
        plain = filled(lib, layers(lib)[which].double())
        m = lib.nn.utils.parametrizations.weight_norm(copy.deepcopy(plain), dim=dim)
        old = lib.nn.utils.weight_norm(copy.deepcopy(plain), dim=dim)
        m.weight.cos().sum().backward()
        grads = {f"grad of {n}": p.grad for n, p in m.named_parameters() if p.grad is not None}
        with lib.no_grad():
            old.weight_g.mul_(2)
        loaded = m.load_state_dict(old.state_dict())
        return {**grads, "weight": m.weight, **{f"state of {n}": v for n, v in m.state_dict().items()},
                "loaded": [list(loaded.missing_keys), list(loaded.unexpected_keys)], "repr": repr(m)}

    both(program)


@pytest.mark.parametrize("which", range(3))
@pytest.mark.parametrize("form", ["parametrizations", "utils"])
def test_spectral_norm(which, form):
    def program(lib):
        m = filled(lib, layers(lib)[which].double())
        utils = lib.nn.utils if form == "utils" else lib.nn.utils.parametrizations
        utils.spectral_norm(m, n_power_iterations=2)
        filled(lib, m)
        shapes = {n: list(v.shape) for n, v in m.state_dict().items()}
        x = lib.ones((2, *((4,) if which == 0 else (2, 5, 5) if which == 1 else (2, 5))), dtype=lib.float64)
        y = m(x) - m(2 * x)                             # the buffers move between the two
        (y * y).sum().backward()
        result = {"y": y, **{f"grad of {n}": p.grad for n, p in m.named_parameters()},
                  **{f"state of {n}": v for n, v in m.state_dict().items()}}
        m.eval()
        result["eval"] = m(x)
        result["again"] = m(x)
        m.load_state_dict(m.state_dict())
        if form == "utils":
            meta = m.state_dict()._metadata[""]["spectral_norm"]
            lib.nn.utils.remove_spectral_norm(m)
            return {**result, "shapes": str(shapes), "meta": str(meta), "left": m.weight,
                    "keys": list(m.state_dict()), "meta after": str(m.state_dict()._metadata[""])}
        lib.nn.utils.parametrize.remove_parametrizations(m, "weight")
        return {**result, "shapes": str(shapes), "left": m.weight, "keys": list(m.state_dict())}

    both(program)


def test_spectral_norm_starts_near_the_norm():
    layer = pt.nn.utils.parametrizations.spectral_norm(linear(pt, 6, 4)).eval()
    norm = np.linalg.norm(layer.parametrizations.weight.original.detach().numpy(), 2)
    got = (layer.parametrizations.weight.original / layer.weight).mean().item()
    assert got == pytest.approx(norm, rel=1e-2)
    vector = pt.nn.utils.parametrizations.spectral_norm(linear(pt), "bias")
    assert vector.bias.norm().item() == pytest.approx(1)
    assert "parametrizations.bias.0._u" not in vector.state_dict()


def test_state_dicts_without_the_second_vector():
    def program(lib):
        m = lib.nn.utils.spectral_norm(linear(lib, 4, 3))
        filled(lib, m)
        m(lib.ones(1, 4, dtype=lib.float64))
        state = m.state_dict()
        del state._metadata, state["weight_v"]
        state["weight"] = state["weight_orig"] / 1.5
        fresh = lib.nn.utils.spectral_norm(lib.nn.Linear(4, 3).double())
        fresh.load_state_dict(state)
        return dict(fresh.state_dict())

    both(program, 1e-7)


SAID_ERRORS_OF_NORMALISED_WEIGHTS = [
    "spectral_norm: Expected n_power_iterations to be positive, but got n_power_iterations=0",
    "spectral_norm: Cannot register two spectral_norm hooks on the same parameter weight",
    "spectral_norm: The module passed to `SpectralNorm` can't have uninitialized parameters.",
    "spectral_norm: `SpectralNorm` cannot be applied as parameter `bias` is None",
    "spectral_norm of 'weight' not found in Linear(in_features=3, out_features=3, bias=True)",
    "spectral_norm: Expected n_power_iterations to be positive, but got n_power_iterations=0",
    "spectral_norm: Dimension out of range (expected to be in range of [-2, 1] but got 2)",
    "spectral_norm: Module 'Linear(in_features=3, out_features=3, bias=True)' has no parameter",
    "orthogonal: Module 'Linear(in_features=3, out_features=3, bias=True)' has no parameter or",
    "orthogonal: Expected a matrix or batch of matrices. Got a tensor of 1 dimensions.",
    'orthogonal: orthogonal_map has to be one of "matrix_exp", "cayley", "householder". Got:',
    "orthogonal: The householder parametrization does not support complex tensors.",
    "orthogonal: Expected a matrix or batch of matrices of shape [3, 3]. Got a tensor of shape",
    "orthogonal: It is not possible to assign to the matrix exponential or the Cayley"]


@pytest.mark.parametrize(("case", "says"), said(SAID_ERRORS_OF_NORMALISED_WEIGHTS, [
    lambda lib: lib.nn.utils.spectral_norm(linear(lib), n_power_iterations=0),
    lambda lib: lib.nn.utils.spectral_norm(lib.nn.utils.spectral_norm(linear(lib))),
    lambda lib: lib.nn.utils.spectral_norm(lib.nn.LazyLinear(3)),
    lambda lib: lib.nn.utils.spectral_norm(lib.nn.Linear(3, 3, bias=False), "bias"),
    lambda lib: lib.nn.utils.remove_spectral_norm(linear(lib)),
    lambda lib: lib.nn.utils.parametrizations.spectral_norm(linear(lib), n_power_iterations=0),
    lambda lib: lib.nn.utils.parametrizations.spectral_norm(linear(lib), dim=2),
    lambda lib: lib.nn.utils.parametrizations.spectral_norm(linear(lib), "nothing"),
    lambda lib: lib.nn.utils.parametrizations.orthogonal(linear(lib), "nothing"),
    lambda lib: lib.nn.utils.parametrizations.orthogonal(linear(lib), "bias"),
    lambda lib: lib.nn.utils.parametrizations.orthogonal(linear(lib), orthogonal_map="none"),
    lambda lib: lib.nn.utils.parametrizations.orthogonal(linear(lib).to(lib.complex128),
                                                         orthogonal_map="householder"),
    lambda lib: setattr(lib.nn.utils.parametrizations.orthogonal(linear(lib)), "weight", lib.zeros(2, 3)),
    lambda lib: setattr(lib.nn.utils.parametrizations.orthogonal(linear(lib), orthogonal_map="cayley",
                                                                 use_trivialization=False), "weight", lib.eye(3)),
]))  # fmt: skip
def test_errors_of_normalised_weights(case, says):
    raises_alike(case, says)


ORTHOGONAL = [(size, how, trivial) for size in ((3, 3), (2, 4), (4, 2))
              for how in ("matrix_exp", "householder", "cayley", None) for trivial in (True, False)]


@pytest.mark.parametrize(("size", "how", "trivial"), ORTHOGONAL)
def test_orthogonal(size, how, trivial):
    def program(lib):
        m = linear(lib, *size)
        lib.nn.utils.parametrizations.orthogonal(m, orthogonal_map=how, use_trivialization=trivial)
        made = m.parametrizations.weight
        start = made.original.clone()
        if trivial:
            q = np.linalg.qr(RNG_Q[:max(size), :max(size)])[0]
            made[0].base = lib.tensor(q)
        with lib.no_grad():
            off = lib.tensor(RNG_Q[:size[1], :size[0]] * 0.3)       # the map reads one side of the diagonal
            made.original.add_(off.tril(-1) if size[1] >= size[0] else off.triu(1))
        weight = m.weight
        (weight * lib.tensor(RNG_Q[:size[1], :size[0]])).cos().sum().backward()
        small = weight if size[1] <= size[0] else weight.mT
        return {"start": start, "weight": weight, "product": small @ small.mT, "grad": made.original.grad,
                "keys": list(m.state_dict()), "repr": repr(made).replace("_OrthMaps.", "")}

    RNG_Q = np.random.default_rng(5).normal(size=(4, 4))
    both(program, 1e-8)


@pytest.mark.parametrize("how", ["matrix_exp", "householder", "cayley"])
@pytest.mark.parametrize("size", [(3, 3), (2, 4), (4, 2)])
def test_orthogonal_keeps_an_orthogonal_weight(size, how):
    m = linear(pt, *size)
    q = np.linalg.qr(RNG.normal(size=(max(size), max(size))))[0][:size[1], :size[0]]
    with pt.no_grad():
        m.weight.copy_(pt.tensor(q))
    pt.nn.utils.parametrizations.orthogonal(m, orthogonal_map=how)
    np.testing.assert_allclose(m.weight.detach().numpy(), q, atol=1e-12)
    m.weight = pt.tensor(-q)
    np.testing.assert_allclose(m.weight.detach().numpy(), -q, atol=1e-12)
