"""Every module of the class table as a function of its parameters: a stack of them under ``vmap`` beside a loop, and
gradients of ``func.grad`` beside those of the tape."""
import pytest
from _module_table import MODULES, RANDOM, as_made, given

import ptcore as pt
from ptcore._trees.tree import tree_leaves, tree_map
from ptcore.func import functional_call, grad, stack_module_state, vmap

pytestmark = pytest.mark.filterwarnings("ignore")

SAMPLES = 3
# A stack of inputs whose size or place in a result depends on values of a sample.
DATA = {"AdaptiveLogSoftmaxWithLoss": "which rows go to which cluster is said by the targets",
        "CTCLoss": "how far the recursion goes is said by the lengths"}


def close(got, expected):
    got, expected = ([x for x in tree_leaves(t) if isinstance(x, pt.Tensor)] for t in (got, expected))
    assert len(got) == len(expected)
    for x, y in zip(got, expected):
        pt.testing.assert_close(x, y, rtol=2e-5, atol=2e-5, equal_nan=True)


def stacked(results):
    """The tensors of some results, those of one place as a stack."""
    leaves = [[x for x in tree_leaves(r) if isinstance(x, pt.Tensor)] for r in results]
    return [pt.stack(list(parts)) for parts in zip(*leaves)]


def clones(tree):
    return tree_map(lambda x: x.detach().clone(), tree)


def part(tree, k):
    return {name: x[k].detach().clone() for name, x in tree.items()}


class Ensemble:
    """Modules of a kind, the stack of their state, their inputs, and which of them are numbers that have slopes."""

    def __init__(self, name, training):
        self.models = [as_made(name, training) for _ in range(SAMPLES)]
        self.args = given(name)
        self.params, self.buffers = stack_module_state(self.models)
        self.params = clones(self.params)
        self.floats = [k for k, x in enumerate(self.args) if x.dtype.is_floating_point]

    def call(self, params, buffers, *args):
        return functional_call(self.models[0], (params, buffers), args)

    def loss(self, params, inputs, buffers):
        args = list(self.args)
        for k, x in zip(self.floats, inputs):
            args[k] = x
        found = [x for x in tree_leaves(self.call(params, buffers, *args))
                 if isinstance(x, pt.Tensor) and x.dtype.is_floating_point]
        return sum([(x * x.detach().cos() + x).sum() for x in found])

    def inputs(self):
        """A stack of inputs: small steps away from those of the table, so that targets keep their meaning."""
        return [pt.stack([x * (1 - 0.01 * k) if i in self.floats else x for k in range(SAMPLES)])
                for i, x in enumerate(self.args)]


def is_drawn(name, training):
    return training and name.startswith(RANDOM)


@pytest.mark.parametrize("training", [False, True])
@pytest.mark.parametrize("name", sorted(MODULES))
def test_ensembles(name, training):
    """A stack of parameters and buffers, which a module in training writes to. Without parameters: of inputs."""
    e = Ensemble(name, training)
    if e.params or e.buffers:
        buffers, args, in_dims = clones(e.buffers), e.args, (0, 0, *[None] * len(e.args))
    else:
        buffers, args, in_dims = {}, e.inputs(), (None, None, *[0] * len(e.args))
        if name in DATA:
            in_dims = (None, None, *[0 if k in e.floats else None for k in range(len(args))])
            args = [x if k in e.floats else x[0] for k, x in enumerate(args)]
    got = vmap(e.call, in_dims=in_dims, randomness="different")(e.params, buffers, *args)
    if is_drawn(name, training):
        assert all(x.shape[0] == SAMPLES for x in tree_leaves(got) if isinstance(x, pt.Tensor))
        return
    states = [part(e.buffers, k) for k in range(SAMPLES)]
    close(got, stacked([e.call(part(e.params, k), states[k],
                               *[x if d is None else x[k] for x, d in zip(args, in_dims[2:])])
                        for k in range(SAMPLES)]))
    if e.buffers:
        close([buffers[key] for key in sorted(buffers)], stacked([[s[key] for key in sorted(s)] for s in states]))


@pytest.mark.parametrize("training", [False, True])
@pytest.mark.parametrize("name", sorted(MODULES))
def test_stacks_of_inputs(name, training):
    """One set of parameters for all samples. (Running statistics are moved by one batch, not by samples.)"""
    e = Ensemble(name, training)
    params, buffers = part(e.params, 0), part(e.buffers, 0)
    if training and e.buffers:
        if any(key.startswith("running") for key in buffers):
            with pytest.raises(RuntimeError, match="is not batched, but a value that is would be"):
                vmap(e.call, in_dims=(None, None, *[0] * len(e.args)))(params, buffers, *e.inputs())
        return
    args = e.inputs()
    if name in DATA:
        with pytest.raises(RuntimeError, match=r"what depends on\s+data, as a branch or bool\(\) does, cannot"):
            vmap(e.call, in_dims=(None, None, *[0] * len(args)))(params, buffers, *args)
        return
    got = vmap(e.call, in_dims=(None, None, *[0] * len(args)), randomness="different")(params, buffers, *args)
    if is_drawn(name, training):
        assert all(x.shape[0] == SAMPLES for x in tree_leaves(got) if isinstance(x, pt.Tensor))
        return
    close(got, stacked([e.call(params, buffers, *[x[k] for x in args]) for k in range(SAMPLES)]))


@pytest.mark.parametrize("training", [False, True])
@pytest.mark.parametrize("name", sorted(MODULES))
def test_gradients(name, training):
    """By parameters and inputs, beside those of the tape; what is drawn is drawn from one state."""
    e = Ensemble(name, training)
    inputs = [e.args[k] for k in e.floats]
    pt.manual_seed(3)
    got = grad(e.loss, argnums=(0, 1))(part(e.params, 0), inputs, part(e.buffers, 0))
    params = {key: x.requires_grad_() for key, x in part(e.params, 0).items()}
    leaves = [x.clone().requires_grad_() for x in inputs]
    pt.manual_seed(3)
    loss = e.loss(params, leaves, part(e.buffers, 0))
    if loss.requires_grad:
        loss.backward()
    close(got, tree_map(lambda x: pt.zeros_like(x) if x.grad is None else x.grad, (params, leaves)))


@pytest.mark.parametrize("training", [False, True])
@pytest.mark.parametrize("name", sorted(set(MODULES)))
def test_gradients_of_each_sample(name, training):
    """``vmap`` of ``grad``: by parameters that all samples share, and by each one's input."""
    e = Ensemble(name, training)
    stacks = e.inputs()
    if not e.floats or (training and any(key.startswith("running") for key in e.buffers)):
        return
    params, buffers = part(e.params, 0), part(e.buffers, 0)
    inputs = [stacks[k] for k in e.floats]
    gradient = grad(lambda p, x: e.loss(p, x, buffers), argnums=(0, 1))
    got = vmap(gradient, in_dims=(None, 0), randomness="different")(params, inputs)
    if is_drawn(name, training):
        assert all(x.shape[0] == SAMPLES for x in tree_leaves(got))
        return
    close(got, stacked([gradient(params, [x[k] for x in inputs]) for k in range(SAMPLES)]))
