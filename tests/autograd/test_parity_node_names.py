"""``grad_fn.name()`` against the name of torch's node class, and the list of names that differ on purpose.

torch's node is a class of its own for each op, ours is one class: ``type(y.grad_fn).__name__`` is
``Node``, the name is ``name()`` and stands in the repr.
"""
import pytest

import ptcore as pt

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.parity

# name: (program, our name if it differs). The reasons that names differ:
SUFFIX = "torch counts the overloads of an op (with dims, with a number, ...); here they are one op"
OTHER_OPS = "another op, or several, does the same work"
DIFFERENT = {
    "sum_dim": SUFFIX, "mean_dim": SUFFIX, "prod_dim": SUFFIX, "pow_tensor": SUFFIX, "pow_of_number": SUFFIX,
    "squeeze_dim": SUFFIX, "remainder_tensor": SUFFIX, "masked_fill_tensor": SUFFIX,
    "max_all": OTHER_OPS, "min_all": OTHER_OPS, "mse_loss": OTHER_OPS, "dropout": OTHER_OPS,
    "fill_": OTHER_OPS, "rsub": OTHER_OPS, "rdiv": OTHER_OPS, "clamp_min": OTHER_OPS,
    "linear": OTHER_OPS, "stack": OTHER_OPS, "reshape_copy": OTHER_OPS, "index_put": OTHER_OPS,
}


def programs(m):
    F = m.nn.functional
    x = m.tensor([[0.3, 0.9, 0.2], [0.5, 0.1, 0.7], [0.8, 0.4, 0.6]], dtype=m.float64, requires_grad=True)
    i = m.tensor([0, 2, 1])
    mask = m.tensor([True, False, True])

    def written(f):
        y = x.clone()
        f(y)
        return y
    return {
        "add": lambda: x + x, "sub": lambda: x - x, "mul": lambda: 2 * x, "div": lambda: x / x, "neg": lambda: -x,
        "rsub": lambda: 2 - x, "rdiv": lambda: 2 / x, "pow": lambda: x ** 2, "pow_tensor": lambda: x ** x,
        "pow_of_number": lambda: 2 ** x, "remainder": lambda: x % 2, "remainder_tensor": lambda: x % x,
        "abs": lambda: x.abs(), "exp": lambda: x.exp(), "exp2": lambda: x.exp2(), "expm1": lambda: x.expm1(),
        "log": lambda: x.log(), "log1p": lambda: x.log1p(), "log10": lambda: x.log10(), "sqrt": lambda: x.sqrt(),
        "rsqrt": lambda: x.rsqrt(), "square": lambda: x.square(), "sin": lambda: x.sin(), "erf": lambda: x.erf(),
        "sigmoid": lambda: x.sigmoid(), "tanh": lambda: x.tanh(),
        "relu": lambda: F.relu(x), "gelu": lambda: F.gelu(x), "softplus": lambda: F.softplus(x),
        "maximum": lambda: m.maximum(x, 2 * x), "where": lambda: m.where(x > 0.5, x, 2 * x),
        "clamp": lambda: x.clamp(0.2, 0.8), "clamp_min": lambda: x.clamp(min=0.2),
        "masked_fill": lambda: x.masked_fill(x > 0.5, 0.), "masked_fill_tensor": lambda: x.masked_fill(
            x > 0.5, m.tensor(0., dtype=m.float64)),
        "sum": lambda: x.sum(), "sum_dim": lambda: x.sum(1), "mean": lambda: x.mean(), "mean_dim": lambda: x.mean(1),
        "prod": lambda: x.prod(), "prod_dim": lambda: x.prod(1), "max": lambda: x.max(1)[0],
        "min": lambda: x.min(1).values, "max_all": lambda: x.max(), "min_all": lambda: x.min(),
        "amax": lambda: x.amax(1), "var": lambda: x.var(1), "std": lambda: x.std(1), "norm": lambda: x.norm(),
        "logsumexp": lambda: x.logsumexp(0), "cumsum": lambda: x.cumsum(0), "sort": lambda: x.sort(1)[0],
        "topk": lambda: x.topk(2)[0], "softmax": lambda: x.softmax(0), "log_softmax": lambda: F.log_softmax(x, 0),
        "layer_norm": lambda: F.layer_norm(x, (3,)), "cross_entropy": lambda: F.cross_entropy(x, i),
        "nll_loss": lambda: F.nll_loss(x, i), "mse_loss": lambda: F.mse_loss(x, 2 * x),
        "dropout": lambda: F.dropout(x, 0.5, True),
        "mm": lambda: x @ x, "addmm": lambda: m.addmm(x, x, x), "bmm": lambda: m.bmm(x[None], x[None]),
        "dot": lambda: x[0] @ x[0], "mv": lambda: x @ x[0], "linear": lambda: F.linear(x, x, x[0]),
        "svd": lambda: m.linalg.svd(x)[1], "t": lambda: x.t(), "transpose": lambda: x.transpose(0, 1),
        "permute": lambda: x.permute(1, 0), "view": lambda: x.view(9), "reshape": lambda: x.reshape(9),
        "reshape_copy": lambda: x.t().reshape(9), "expand": lambda: x[0].expand(3, 3),
        "unsqueeze": lambda: x[None], "squeeze_dim": lambda: x[:1].squeeze(0), "squeeze": lambda: x[:1].squeeze(),
        "select": lambda: x[0], "slice": lambda: x[1:], "diagonal": lambda: x.diagonal(), "flip": lambda: x.flip(0),
        "cat": lambda: m.cat([x, x]), "stack": lambda: m.stack([x, x]), "split": lambda: x.split(2)[0],
        "unbind": lambda: x.unbind()[0], "split_sizes": lambda: x.split([1, 2])[1], "chunk": lambda: x.chunk(2)[1],
        "chunk_of_nothing": lambda: x[:0].chunk(2)[1], "tensor_split": lambda: x.tensor_split(2)[1],
        "hsplit": lambda: x.hsplit([1])[1], "iteration": lambda: list(x)[1],
        "index": lambda: x[i], "index_mask": lambda: x[mask],
        "gather": lambda: x.gather(0, i[None]), "index_select": lambda: x.index_select(0, i),
        "scatter_add": lambda: x.scatter_add(0, i[None], x), "scatter": lambda: x.scatter(0, i[None], x),
        "clone": lambda: x.clone(), "contiguous": lambda: x.t().contiguous(), "to_dtype": lambda: x.float(),
        "copy_": lambda: written(lambda y: y.copy_(x)), "fill_": lambda: written(lambda y: y.fill_(x.sum())),
        "mul_": lambda: written(lambda y: y.mul_(2)), "index_put": lambda: written(lambda y: y.__setitem__(i, x)),
        "assign_int": lambda: written(lambda y: y.__setitem__(0, 1.)),
    }


OURS, THEIRS = programs(pt), programs(torch)


@pytest.mark.parametrize("name", OURS)
def test_name(name):
    ours, theirs = OURS[name]().grad_fn.name(), type(THEIRS[name]().grad_fn).__name__
    if name in DIFFERENT:
        assert ours != theirs, f"{name} is called as in torch now: take it off the list"
        if DIFFERENT[name] is SUFFIX:
            assert ours.rstrip("0123456789") == theirs.rstrip("0123456789")
    else:
        assert ours == theirs


def test_the_list_speaks_of_programs():
    assert set(DIFFERENT) <= set(OURS)


def test_leaves_seen_from_outside():
    """next_functions ends in AccumulateGrad nodes, as programs that draw graphs expect."""
    for m in (pt, torch):
        x, y = m.ones(2, requires_grad=True), m.ones(2)
        (end, nr), (none, _) = (x * y).grad_fn.next_functions
        assert type(end).__name__ == "AccumulateGrad" and end.name().endswith("AccumulateGrad")
        assert end.variable is x and nr == 0 and end.next_functions == () and none is None
        assert (x + x).grad_fn.next_functions[0][0] == end
        assert len({f for f, _ in (x + x).grad_fn.next_functions}) == 1
