"""The protocol of interpreters: what each method is by default, and when it is asked."""
import numpy as np
import pytest

import ptcore as pt
import ptcore._ops as ops
from ptcore import func
from ptcore._interpret import Interpreter, Payload, entered, innermost
from ptcore._ops.calling import run
from ptcore._ops.table.ids import n_ops, op_id, op_name
from ptcore._subclass import carried_by, stands_for

pytestmark = pytest.mark.core


class Value(Payload):
    def __init__(self, tensor, owner=None):
        super().__init__(owner)
        self.tensor = tensor


class Noting(Interpreter):
    """Keeps what it is told and asked."""

    def __init__(self):
        self.notes = []

    def call(self, op, args, out, variant):
        self.notes.append((op_name(op), variant, out is not None))
        return NotImplemented

    def created(self, kind, x):
        self.notes.append(("created", kind))

    def read(self, kind, x):
        self.notes.append(("read", kind))

    def changed(self, kind, x):
        self.notes.append(("changed", kind))


def test_one_that_overrides_nothing_changes_nothing():
    def program():
        x = pt.arange(6.).reshape(2, 3).requires_grad_()
        y = (x.exp() @ pt.ones(3, 2)).softmax(-1) * 1
        y[0, 0] *= 2
        y.pow(2).sum().backward()
        out = pt.empty(2, 3)
        pt.sin(x.detach(), out=out)
        return [x.grad, y.detach(), out, func.grad(lambda x: x.sum())(x), pt.vmap(pt.sum)(x), pt.tensor([1.5])]
    plain = program()
    with Interpreter() as one:
        assert entered() == (one,) and innermost() is one
        watched = program()
    assert entered() == () and innermost() is None
    for a, b in zip(plain, watched, strict=True):
        assert a.equal(b)


def test_calls_have_ids_and_the_variant():
    x, out = pt.ones(2), pt.empty(2)
    with Noting() as noting:
        x + x
        x.add_(1)
        pt.exp(x, out=out)
        pt.mm(pt.ones(1, 1), pt.ones(1, 1))
    names = [n for n in noting.notes if n[0] != "fill_full"]
    assert names == [("add", 0, False), ("add", 1, False), ("exp", 0, True), ("mm", 0, False)]


MADE = {
    "empty": (lambda: pt.empty(3), ["fill_full"]), "zeros": (lambda: pt.zeros(2, 3), ["fill_full"]),
    "ones": (lambda: pt.ones((3,)), ["fill_full"]), "full": (lambda: pt.full((3,), 1.5), ["fill_full"]),
    "arange": (lambda: pt.arange(3), ["fill_arange"]), "linspace": (lambda: pt.linspace(0, 1, 3), ["fill_linspace"]),
    "eye": (lambda: pt.eye(3), ["fill_eye"]), "rand": (lambda: pt.rand(3), ["random_uniform"]),
    "randn": (lambda: pt.randn(3, dtype=pt.float64), ["random_normal"]),
    "randint": (lambda: pt.randint(0, 9, (3,)), ["random_integers"]),
    "randperm": (lambda: pt.randperm(3), ["randperm_values"]),
    "bernoulli": (lambda: pt.bernoulli(X), ["bernoulli_of"]),
    "normal_": (lambda: X.clone().normal_(), ["clone", "random_normal", "assign"]),
    "uniform_": (lambda: X.clone().uniform_(), ["clone", "random_uniform", "assign"]),
    "exponential_": (lambda: X.clone().exponential_(), ["clone", "random_exponential", "assign"]),
    "random_": (lambda: X.clone().random_(9), ["clone", "random_integers", "assign"]),
    "multinomial": (lambda: pt.multinomial(X, 2)[:0], ["multinomial"]),
}
X = pt.tensor([0.25, 0.5, 0.75])


@pytest.mark.parametrize("name", MADE)
def test_creation_and_draws_are_offered_by_id(name):
    """What is made of no tensor, and what is drawn, is seen as every op is, with the values that it has without."""
    call, ops_seen = MADE[name]
    pt.manual_seed(3)
    plain = call()
    pt.manual_seed(3)
    with Noting() as noting:
        watched = call()
    assert [n[0] for n in noting.notes][:len(ops_seen)] == ops_seen
    assert watched.dtype is plain.dtype and watched.shape == plain.shape
    assert name == "empty" or watched.equal(plain)


def test_what_is_no_op_is_told():
    x = pt.ones(2)
    with Noting() as noting:
        pt.from_numpy(np.ones(2))
        x.sum().item()
        x.requires_grad = True
        x.grad = None
        x.data = pt.zeros(2)
    told = [n for n in noting.notes if n[0] in ("created", "read", "changed")]
    assert told == [("created", "from_numpy"), ("read", "item"), ("changed", "requires_grad"), ("changed", "grad"),
                    ("changed", "data")]


def test_a_payload_that_overrides_nothing():
    value = pt.arange(6.).reshape(2, 3)
    x = stands_for(value, Value(value))
    assert (x.shape, x.stride(), x.dtype, x.device.type) == ((2, 3), (3, 1), pt.float32, "cpu")
    assert carried_by(x.detach(), None).tensor is value
    assert carried_by(pt.zeros_like(x), None) is None
    for read in (x.sum, x.tolist, x.numpy, stands_for(pt.ones(()), Value(pt.ones(()))).item):
        with pytest.raises(RuntimeError, match=r"not known here|has ended"):
            read()


def test_only_payloads_and_interpreters():
    with pytest.raises(TypeError):
        stands_for(pt.ones(1), object())
    with pytest.raises(TypeError):
        Payload(object())
    for missing in ((None, Payload()), (pt.ones(1), None)):
        with pytest.raises(TypeError, match="stands_for: "):
            stands_for(*missing)


def test_rows_by_id():
    for name in ("add", "sum", "mm", "view", "gelu__d0"):
        assert ops.row(op_id(name)) is ops.row(name)
        assert ops.function(op_id(name)) is ops.function(name)
    with pytest.raises(IndexError, match="op_name: op must be in"):
        ops.row(n_ops())
    x = pt.ones(2)
    assert run(op_id("add"), (x, x, 1)).equal(run("add", (x, x, 1)))


def test_the_row_of_an_id_outlives_its_name():
    """An interpreter gets the row of a function whose op was taken out of the table, and not that of its successor."""
    rows = []

    class Rows(Interpreter):
        traces = True

        def call(self, op, args, out, variant):
            rows.append(ops.row(op))
            return NotImplemented

    functions = []
    for factor in (2, 3):
        library = pt.library.Library("test_interpret", "FRAGMENT")
        library.define("scaled(Tensor x) -> Tensor")
        library.impl("scaled", lambda x, factor=factor: x * factor, "CompositeExplicitAutograd")
        functions.append(ops.function("test_interpret::scaled"))
        if factor == 2:
            library._destroy()
    with Rows():
        with pytest.raises(NotImplementedError):        # its kernel has gone with its library
            functions[0](pt.ones(1))
        assert functions[1](pt.ones(1)).item() == 3
    library._destroy()
    first, second = [r for r in rows if r.name == "test_interpret::scaled"]
    assert first is not second and first.definition is not second.definition
