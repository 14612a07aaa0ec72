"""Functions of the op table as Python objects: one type, bound in C, that inspect, help, pickle and doctest know."""
import copy
import doctest
import functools
import inspect
import pickle
import pydoc
import subprocess
import sys
import weakref

import pytest
from _walk import walk

import ptcore as pt
from ptcore._ops import functions, rows
from ptcore._ops.table import ids as _table
from ptcore._ops.table import signature as _signature
from ptcore.nn import functional as F

pytestmark = pytest.mark.core

OpFunction = type(pt.add)
ROWS = [r for r in rows() if r.family != "registered"]
PUBLIC = [r for r in ROWS if r.public]
HAVE_VECTORCALL, METHOD_DESCRIPTOR, IMMUTABLETYPE, DISALLOW_INSTANTIATION = 1 << 11, 1 << 17, 1 << 8, 1 << 7


def test_one_type():
    for f in (pt.add, pt.softmax, pt.cat, pt.max, pt.Tensor.view, pt.Tensor.add_, F.relu, pt.linalg.svd):
        assert type(f) is OpFunction
    assert all(type(getattr(functions, r.name)) is OpFunction for r in ROWS)


def test_flags():
    flags = OpFunction.__flags__
    for flag in (HAVE_VECTORCALL, METHOD_DESCRIPTOR, IMMUTABLETYPE, DISALLOW_INSTANTIATION):
        assert flags & flag
    with pytest.raises(TypeError, match="immutable"):
        OpFunction.__call__ = None
    with pytest.raises(TypeError, match="cannot create"):
        OpFunction()
    assert hasattr(OpFunction, "__get__")
    assert not hasattr(OpFunction, "__set__")


def test_functions_are_methods():
    x = pt.tensor([-1.0, 2.0])
    assert pt.Tensor.relu is pt.relu
    assert x.relu.__self__ is x
    assert x.relu.__func__ is pt.relu
    assert x.relu().tolist() == pt.relu(x).tolist() == [0, 2]
    assert pt.relu.__get__(None, pt.Tensor) is pt.relu


def test_what_inspect_says():
    assert inspect.isroutine(pt.add)
    assert inspect.ismethoddescriptor(pt.add)
    assert callable(pt.add)
    assert str(inspect.signature(pt.add)) == "(input, other, *, alpha=1, out=None)"
    assert str(inspect.signature(pt.Tensor.view)) == "(input, *shapes, shape=None)"
    assert str(inspect.signature(pt.ones(2).sum)) == (
        "(dim=None, keepdim=False, *, dtype=None, axis=None, keepdims=None, out=None)")
    assert (pt.add.__name__, pt.add.__qualname__, pt.add.__module__) == ("add", "add", "ptcore")
    assert (F.gelu.__module__, pt.Tensor.view.__qualname__) == ("ptcore.nn.functional", "Tensor.view")
    assert repr(pt.add) == "<function ptcore.add>"


def test_help_and_doctest():
    text = pydoc.plain(pydoc.render_doc(pt.softmax))
    assert "softmax(input, dim" in text
    assert "Parameters" in text
    (found,) = doctest.DocTestFinder().find(pt.add, "add", module=pt)
    assert len(found.examples) >= 2


@walk("row", [pytest.param(r, id=r.name) for r in PUBLIC])
def test_every_public_function(row):
    """It is found under its own name, so that it can be pickled; signature and docstring are the row's."""
    where, _, name = row.public[0].rpartition(".")
    module = functools.reduce(getattr, where.split(".") if where else (), pt)
    f = getattr(module, name)
    assert pickle.loads(pickle.dumps(f)) is f
    assert copy.deepcopy(f) is copy.copy(f) is f
    names = [p.name for p in _signature.parameters(row)]
    assert sorted(inspect.signature(f).parameters) == sorted(names)
    assert f.__doc__ == _signature.docstring(row, _signature.FUNCTION)
    assert f.op == _table.op_id(row.name)


def test_pickles():
    x = pt.tensor([1.0, -2.0])
    assert pickle.loads(pickle.dumps(x.abs))().tolist() == [1, 2]
    assert pickle.loads(pickle.dumps(pt.Tensor.view)) is pt.Tensor.view
    assert pickle.loads(pickle.dumps(pt.Tensor.add_)) is pt.Tensor.add_


def test_weak_references_and_wraps():
    assert weakref.ref(pt.add)() is pt.add

    @functools.wraps(pt.add)
    def mine(*args, **kwargs):
        return pt.add(*args, **kwargs)
    assert (mine.__name__, mine.__doc__, mine.__wrapped__) == ("add", pt.add.__doc__, pt.add)
    assert inspect.signature(mine) == inspect.signature(pt.add)


def test_binding():
    x = pt.tensor([[1.0, 2.0], [3.0, 4.0]])
    assert pt.sum(x, 1).tolist() == pt.sum(x, dim=1).tolist() == pt.sum(x, axis=1).tolist() == [3, 7]
    assert pt.sum(input=x, keepdim=True).shape == pt.sum(x, keepdims=True).shape == (1, 1)
    assert x.view(4).tolist() == x.view(2, 2).view((4,)).tolist() == x.view(shape=[4]).tolist() == [1, 2, 3, 4]
    assert pt.add(x, other=1, alpha=2).tolist() == [[3, 4], [5, 6]]
    assert pt.einsum("ij,jk", x, x).tolist() == (x @ x).tolist()
    assert F.relu(-x, True).tolist() == F.relu(-x, inplace=True).tolist() == [[0, 0], [0, 0]]


@pytest.mark.parametrize(("call", "text"), [
    (lambda x: pt.add(), r"add\(\) missing required argument 'input' \(pos 1\)"),
    (lambda x: pt.add(x), r"add\(\) missing required argument 'other' \(pos 2\)"),
    (lambda x: pt.add(x, x, x), r"add\(\) takes exactly 2 positional arguments \(3 given\)"),
    (lambda x: pt.sum(x, 0, True, 3), r"sum\(\) takes at most 3 positional arguments \(4 given\)"),
    (lambda x: pt.add(x, x, beta=1), r"add\(\) got an unexpected keyword argument 'beta'"),
    (lambda x: pt.add(x, input=x), r"add\(\) got multiple values for keyword argument 'input'"),
    (lambda x: x.view(2, shape=2), r"view\(\) got multiple values for keyword argument 'shape'"),
    (lambda x: pt.sum(x, 0, axis=0), "sum: dim and axis are two names of one argument; both were given"),
    (lambda x: pt.sum(x, keepdim=True, keepdims=True), "sum: keepdim and keepdims are two names of one argument"),
    (lambda x: pt.softplus_of(x), "has no attribute 'softplus_of'"),
])
def test_errors(call, text):
    with pytest.raises((TypeError, AttributeError), match=text):
        call(pt.ones(2))


READS_THE_TABLE = """
import importlib, sys, threading, time
from ptcore import _ops
from ptcore._ops.table import ids
if sys.argv[1] == "a file first":
    importlib.import_module("ptcore._ops.activation.rows")
else:
    importlib.import_module("ptcore._ops.table.schema")
    sys.setswitchinterval(1e-6)
    readers = [threading.Thread(target=lambda k=k: (time.sleep(0.003 * k), _ops.rows())) for k in range(8)]
    for reader in readers:
        reader.start()
    for reader in readers:
        reader.join()
print(len(_ops.rows()), len({row.family for row in _ops.rows()}), len(ids.families()))
"""


@pytest.mark.parametrize("how", ["a file first", "threads"])
def test_no_row_is_lost(how):
    """Not where a file of rows has been imported before, nor where threads read the table for the first time."""
    done = subprocess.run([sys.executable, "-P", "-c", READS_THE_TABLE, how], capture_output=True, text=True)
    families = {row.family for row in ROWS}
    assert done.stdout.split() == [str(len(ROWS)), str(len(families)), str(len(families))], done.stdout + done.stderr


def test_keywords_that_are_not_interned():
    name = "".join(["di", "m"])
    assert pt.sum(pt.ones(2, 3), **{name: 0}).tolist() == [2, 2, 2]
