"""Functions that are others with parameters of their own: each by position and by keyword, beside the function of
nn.functional that does the work, which has its own oracles."""
import inspect

import pytest
from _cases import ROWS

import ptcore as pt

pytestmark = pytest.mark.core
F = pt.nn.functional
X, Y, Z = (pt.randn(3, 4, generator=pt.Generator().manual_seed(k)) for k in (1, 2, 3))
SIGNS, LENGTHS = pt.tensor([1.0, -1.0, 1.0]), (pt.tensor([5, 4]), pt.tensor([2, 2]))
LOGS, LABELS = pt.randn(5, 2, 4).log_softmax(-1), pt.tensor([[1, 2], [3, 3]])
C = [pt.tensor([1.0, 2.0, -1.0, 0.5]), pt.tensor([0.5, 0.0, 1.0, -1.0])]
LINE = pt.randn(2, 4, 12, generator=pt.Generator().manual_seed(4))
IMAGE = pt.randn(2, 4, 6, 6, generator=pt.Generator().manual_seed(5))
VOLUME = pt.randn(2, 4, 4, 4, 4, generator=pt.Generator().manual_seed(6))


def running():
    return [pt.tensor([0.1, 0.2, 0.3, 0.4]), pt.tensor([1.0, 2.0, 3.0, 4.0])]


# row -> pairs of arguments in the order of the spelling, and the call that they mean
CALLS = {
    "kl_div__top": [((X, Y.abs(), 2), lambda: F.kl_div(X, Y.abs(), reduction="sum")),
                    ((X, Y.abs()), lambda: F.kl_div(X, Y.abs(), reduction="none"))],
    "binary_cross_entropy_with_logits__top": [
        ((X, Y.sigmoid(), Z.abs(), C[0].abs(), 1),
         lambda: F.binary_cross_entropy_with_logits(X, Y.sigmoid(), Z.abs(), reduction="mean", pos_weight=C[0].abs()))],
    "cosine_embedding_loss__top": [((X, Y, SIGNS, 0.3, 2), lambda: F.cosine_embedding_loss(X, Y, SIGNS, 0.3, reduction="sum"))],
    "ctc_loss__top": [((LOGS, LABELS, *LENGTHS, 0, 1, True),
                       lambda: F.ctc_loss(LOGS, LABELS, *LENGTHS, 0, "mean", True))],
    "hinge_embedding_loss__top": [((X[:, 0], SIGNS, 2.0, 2),
                                   lambda: F.hinge_embedding_loss(X[:, 0], SIGNS, 2.0, reduction="sum"))],
    "margin_ranking_loss__top": [((X[:, 0], Y[:, 0], SIGNS, 0.5, 1),
                                  lambda: F.margin_ranking_loss(X[:, 0], Y[:, 0], SIGNS, 0.5, reduction="mean"))],
    "poisson_nll_loss__top": [((X, Y.abs(), False, True, 1e-3, 2),
                               lambda: F.poisson_nll_loss(X, Y.abs(), False, True, eps=1e-3, reduction="sum"))],
    "triplet_margin_loss__top": [((X, Y, Z, 2.0, 1, 1e-3, True, 2),
                                  lambda: F.triplet_margin_loss(X, Y, Z, 2.0, 1, 1e-3, True, reduction="sum"))],
    "layer_norm__top": [((X, (4,), *C, 1e-3, False), lambda: F.layer_norm(X, (4,), *C, 1e-3))],
    "group_norm__top": [((X, 2, *C, 1e-3, False), lambda: F.group_norm(X, 2, *C, 1e-3))],
    "batch_norm__top": [((X, *C, *running(), False, 0.1, 1e-3, True), lambda: F.batch_norm(X, *running(), *C, eps=1e-3)),
                        ((X, *C, *running(), True, 0.1, 1e-3, True), lambda: F.batch_norm(X, None, None, *C, True, eps=1e-3))],
    "instance_norm__top": [((LINE, *C, *running(), False, 0.1, 1e-3, True),
                            lambda: F.instance_norm(LINE, *running(), *C, False, eps=1e-3)),
                           ((LINE, *C, *running(), True, 0.1, 1e-3, True),
                            lambda: F.instance_norm(LINE, None, None, *C, eps=1e-3))],
    "hardtanh_inplace": [((X, -0.5, 0.5), lambda: F.hardtanh(X, -0.5, 0.5))],
    "rrelu_inplace": [((X, 0.25, 0.25), lambda: F.rrelu(X, 0.25, 0.25))],
    "polygamma": [((X.abs(), 2), lambda: pt.polygamma(2, X.abs()))],
    "adaptive_max_pool1d__top": [((LINE, 5), lambda: F.adaptive_max_pool1d(LINE, 5, True))],
    "max_pool1d_with_indices__top": [((LINE, 3), lambda: F.max_pool1d(LINE, 3, return_indices=True)),
                                     ((LINE, 3, (2,), 1, 1, True), lambda: F.max_pool1d(LINE, 3, 2, 1, 1, True, True))],
    **{f"max_pool{n}d_with_indices": [((x, 2), lambda f=f, x=x: f(x, 2, return_indices=True)),
                                      ((x, 3, 1, 1, 1, True), lambda f=f, x=x: f(x, 3, 1, 1, 1, True, True))]
       for n, x, f in ((1, LINE, F.max_pool1d), (2, IMAGE, F.max_pool2d), (3, VOLUME, F.max_pool3d))},
    **{f"adaptive_max_pool{n}d_with_indices": [((x, 2), lambda f=f, x=x: f(x, 2, True))]
       for n, x, f in ((1, LINE, F.adaptive_max_pool1d), (2, IMAGE, F.adaptive_max_pool2d),
                       (3, VOLUME, F.adaptive_max_pool3d))},
}


def test_each_has_a_call():
    assert set(CALLS) == {r.name for r in ROWS.values() if r.spells}


@pytest.mark.parametrize("name", CALLS)
def test_calls(name):
    row = ROWS[name]
    where, _, public = row.public[0].rpartition(".") if row.public else ("Tensor", "", row.name)
    f = getattr({"nn.functional": F, "": pt, "Tensor": pt.Tensor}[where], public)
    assert f.__name__ == public and f.__doc__.startswith("See :func:`ptcore.")
    for args, call in CALLS[name]:
        want = call()
        pt.testing.assert_close(f(args[0].clone(), *args[1:]), want, rtol=0, atol=0, equal_nan=True)
        names = list(inspect.signature(f).parameters)
        assert len(names) >= len(args)
        pt.testing.assert_close(f(args[0].clone(), **dict(zip(names[1:], args[1:]))), want, rtol=0, atol=0, equal_nan=True)


@pytest.mark.parametrize("f, same, args", [(F.hardtanh_, F.hardtanh, (-0.5, 0.25)), (F.rrelu_, F.rrelu, (0.25, 0.25)),
                                           (pt.Tensor.polygamma_, lambda x, n: pt.polygamma(n, x), (1,))])
def test_in_place(f, same, args):
    x = pt.tensor([-2.5, 0.5, 1.5])
    want = same(x.clone(), *args)
    assert f(x, *args) is x and x._version == 1
    pt.testing.assert_close(x, want, rtol=0, atol=0)


def test_polygamma_of_integers_has_no_place():
    with pytest.raises(RuntimeError, match="polygamma_: result type float32 can't be cast"):
        pt.tensor([1, 2]).polygamma_(1)


@pytest.mark.parametrize("reduction", [3, -1])
def test_a_reduction_that_is_no_number_of_one(reduction):
    with pytest.raises(ValueError, match=r"kl_div: reduction must be 0 \(none\), 1 \(mean\) or 2 \(sum\), got"):
        pt.kl_div(X, Y, reduction)
    with pytest.raises(TypeError, match="kl_div: reduction must be int, got str"):
        pt.kl_div(X, Y, "sum")
