"""Parts and slices that one call makes of a tensor, with ptcore and with torch: gradients of all and of some,
of two orders, names of nodes, writes to parts and to their base."""
import numpy as np
import pytest
from autograd_programs import compare

import ptcore as pt

torch = pytest.importorskip("torch")

pytestmark = [pytest.mark.parity, pytest.mark.core]

CUTS = {
    "unbind": lambda x: x.unbind(0), "unbind_last": lambda x: x.unbind(-1), "iteration": lambda x: tuple(x),
    "split": lambda x: x.split(3), "split_all": lambda x: x.split(7), "split_one": lambda x: x.split(1, 1),
    "split_sizes": lambda x: x.split([2, 0, 3, 1]), "split_with_sizes": lambda x: x.split_with_sizes([1, 3], 1),
    "chunk": lambda x: x.chunk(4), "chunk_dim": lambda x: x.chunk(3, -1), "chunk_of_nothing": lambda x: x[:0].chunk(3),
    "tensor_split": lambda x: x.tensor_split(4), "tensor_split_at": lambda x: x.tensor_split([1, 1, 9]),
    "tensor_split_back": lambda x: x.tensor_split([4, 2]), "tensor_split_below": lambda x: x.tensor_split((-2,), 1),
    "hsplit": lambda x: x.hsplit([1, 3]), "vsplit": lambda x: x.vsplit(2), "dsplit": lambda x: x[None].dsplit(4),
    "of_a_transpose": lambda x: x.t().unbind(0), "of_a_part": lambda x: x.split(4)[0].unbind(1),
    "strided": lambda x: x[::2].unbind(0), "one_row": lambda x: x[:1].unbind(0), "vector": lambda x: x[0].unbind(),
}


def start(T):
    return T.tensor(np.random.default_rng(0).normal(size=(6, 4)), requires_grad=True)


def used(parts, which):
    """The parts that take part in the loss."""
    n = len(parts)
    chosen = {"all": range(n), "first": range(min(n, 1)), "last": range(max(n - 1, 0), n), "odd": range(1, n, 2),
              "twice": [0, 0] if n else [], "none": []}[which]
    return [parts[k] for k in chosen]


@pytest.mark.parametrize("which", ["all", "first", "last", "odd", "twice", "none"])
@pytest.mark.parametrize("name", CUTS)
def test_gradients(name, which):
    def program(T):
        x = start(T)
        parts = CUTS[name](x)
        loss = (x * x).sum() + sum([(p ** 3).sum() * (k + 1) for k, p in enumerate(used(parts, which))])
        first, = T.autograd.grad(loss, x, create_graph=True)
        second, = T.autograd.grad((first * first).sum(), x)
        return [type(parts).__name__, [list(p.shape) for p in parts], [p.is_leaf for p in parts], first, second]
    compare(program)


@pytest.mark.parametrize("name", CUTS)
def test_gradients_of_parts_and_hooks(name):
    def program(T):
        x = start(T)
        parts = CUTS[name](x)
        seen = []
        for p in parts:
            p.retain_grad()
        if parts:
            parts[-1].register_hook(lambda g: seen.append(g.clone()) or g * 2)
        loss = sum([(p ** 2).sum() for p in parts]) + x.sum()
        loss.backward(retain_graph=True)
        loss.backward()
        grads = T.autograd.grad(sum([(p ** 2).sum() for p in parts]), parts) if 0 < len(parts) < 3 else ()
        return [seen, [p.grad for p in parts], x.grad, grads]
    compare(program)


@pytest.mark.parametrize("name", CUTS)
def test_names_and_outputs(name):
    mine, theirs = CUTS[name](start(pt)), CUTS[name](start(torch))
    assert [p.grad_fn.name() for p in mine] == [type(p.grad_fn).__name__ for p in theirs]
    if theirs and "Slice" not in type(theirs[0].grad_fn).__name__:
        assert len({p.grad_fn for p in mine}) == len({p.grad_fn for p in theirs}) == 1
        assert [p.output_nr for p in mine] == [p.output_nr for p in theirs]


@pytest.mark.parametrize("name", CUTS)
def test_a_write_to_a_part(name):
    """Recorded, it is refused where one function makes several views; where nothing is recorded it is a write."""
    def recorded(T):
        y = start(T) * 2
        parts = CUTS[name](y)
        if not parts or not parts[0].numel():
            return None
        parts[0].mul_(3)
        return [p.clone() for p in parts], T.autograd.grad((y * y).sum() + parts[-1].sum(), y)
    compare(recorded)

    def plain(T):
        y = start(T).detach()
        for k, p in enumerate(CUTS[name](y)):
            p.add_(k)
        return y
    compare(plain)


@pytest.mark.parametrize("name", CUTS)
def test_a_write_to_the_base(name):
    """Parts of before it get a history of their own."""
    def program(T):
        x = start(T)
        y = x * 2
        parts = CUTS[name](y)
        y.mul_(x.detach())
        loss = sum([(p ** 2).sum() for p in parts])
        return [T.autograd.grad(loss, x)] if len(parts) and loss.requires_grad else None
    compare(program)


@pytest.mark.parametrize("name", CUTS)
def test_parts_made_under_no_grad(name):
    def program(T):
        y = start(T) * 1
        with T.no_grad():
            parts = CUTS[name](y)
        flags = [(p.requires_grad, p.grad_fn is None) for p in parts]
        if parts:
            parts[0].add_(1)
        return flags
    compare(program)


def test_gradients_of_empty_vectors_in_a_join():
    def program(T):
        x, e = start(T), T.zeros(0, dtype=T.float64, requires_grad=True)
        joined = T.cat([e, x, e * 2, x * x], 1)
        grads = T.autograd.grad(joined.pow(2).sum(), [x, e], create_graph=True)
        T.cat([e, x]).sum().backward()
        return joined, grads, e.grad, x.grad
    compare(program)
