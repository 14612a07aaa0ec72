"""Tensors without the history of what they were made of: copies, parameters, ``detach``, ``data``, ``detach_``.

What is then written to them has a history of its own. Derivatives are known in closed form; they are asked for in
reverse and forward mode, of batches, graphs, functionalized and compiled programs, and of their compositions.
"""
import copy

import numpy as np
import pytest

import ptcore as pt
from ptcore import nn
from ptcore.func import functionalize, grad, hessian, jacfwd, jacrev, jvp, linearize, vmap
from ptcore.fx.experimental.proxy_tensor import make_fx

pytestmark = pytest.mark.core

X = np.array([0.5, -1.25, 2.0])


def detached_in_place(x):
    y = x * 1
    y.detach_()
    return y


def kept(module, x):
    module.value = x
    return module.value


CUTS = {
    "copy": copy.copy,
    "deepcopy": lambda x: copy.deepcopy(x.detach()),
    "deepcopy of a leaf": lambda x: copy.deepcopy(x) if x.is_leaf else x.detach(),
    "parameter": nn.Parameter,
    "parameter without a gradient": lambda x: nn.Parameter(x, requires_grad=False),
    "parameter of a list": lambda x: nn.ParameterList([x])[0],
    "parameter of a module": lambda x: kept(nn.Module(), nn.Parameter(x)),
    "buffer": lambda x: nn.Buffer(x.detach()),
    "detach": lambda x: x.detach(),
    "detach_": detached_in_place,
    "data": lambda x: x.data,
    "leaf": lambda x: x.detach().requires_grad_(),
    "tensor": lambda x: pt.tensor(x),
    "new_tensor": lambda x: x.new_tensor(x),
    "copy of a view": lambda x: copy.copy(x[:]),
}


def cut(name, of_argument):
    def f(x):
        y = CUTS[name](x if of_argument else x * 2)
        return (y * x).sum()
    return f, (1 if of_argument else 2) * X


# -- what is written to them: (program, its derivative) ---------------------------------------------------------------

def result_written(x):
    y = (x * 2).detach()
    y.mul_(x)
    return (y * x).sum()


def alias_written(x):
    y = x * 2
    d = y.detach()
    d[1:].mul_(x[1:])
    return (d * x + y).sum()


def data_written(x):
    y = x * 2
    d = y.data
    d.mul_(x)
    return (d * x + y).sum()


def original_written(x):
    y = x * 2
    d = y.detach()
    d.mul_(x)               # d and y show 2 x^2; d leads to x by the factor x alone
    y.mul_(3)
    return (d * x).sum() + (y * x).sum()


def copy_written(x):
    y = copy.copy((x * 2).detach())
    y.mul_(x)
    return (y * x).sum()


def parameter_written(x):
    p = nn.Parameter(x * 2, requires_grad=False)
    p.mul_(x)
    return (p * x).sum()


def written_in_place_of_history(x):
    y = x * 2
    y.detach_()
    y.mul_(x)
    y[:2].add_(x[:2])
    return (y * x).sum()


def original_of_a_copy_written(x):
    y = x * 2
    c = copy.copy(y)
    y.mul_(3)
    return (c * x).sum()


def unrecorded_write(x):
    d = (x * 2).detach()
    d.mul_(x)
    e = d.detach()
    e.mul_(3)
    return (d * x).sum()


WRITES = {
    result_written: 4 * X * X,
    alias_written: np.array([2 * X[0], 4 * X[1] ** 2, 4 * X[2] ** 2]) + 2,
    data_written: 4 * X * X + 2,
    original_written: 14 * X * X + 6 * X,
    copy_written: 4 * X * X,
    parameter_written: 4 * X * X,
    written_in_place_of_history: 4 * X * X + np.array([2.0, 2.0, 0.0]) * X,
    original_of_a_copy_written: 6 * X,
    unrecorded_write: 8 * X * X,
}


def reverse(f):
    def derivative(x):
        x = x.clone().requires_grad_()
        return pt.autograd.grad(f(x), x)[0]
    return derivative


def compiled(f):
    c = pt.compile(f)
    reverse(c)(pt.tensor(X))
    return c


def forwards(f):
    return lambda x: pt.stack([jvp(f, (x,), (v,))[1] for v in pt.eye(len(X), dtype=x.dtype)])


def linear(f):
    return lambda x: pt.stack([linearize(f, x)[1](v) for v in pt.eye(len(X), dtype=x.dtype)])


def batched(f):
    return lambda x: vmap(f)(x[None]).sum()


def graph(f):
    return make_fx(f)(pt.tensor(X))


FORMS = {
    "reverse": reverse,
    "grad": grad,
    "jacrev": jacrev,
    "jvp": forwards,
    "jacfwd": jacfwd,
    "linearize": linear,
    "batch": lambda f: reverse(batched(f)),
    "forward mode of a batch": lambda f: forwards(batched(f)),
    "batch of gradients": lambda f: lambda x: vmap(grad(f))(x[None])[0],
    "batch in forward mode": lambda f: lambda x: vmap(forwards(f))(x[None])[0],
    "functionalize": lambda f: reverse(functionalize(f)),
    "functionalize in grad": lambda f: grad(functionalize(f)),
    "functionalize in forward mode": lambda f: forwards(functionalize(f)),
    "grad in functionalize": lambda f: functionalize(grad(f)),
    "graph of the gradient": lambda f: graph(grad(f)),
    "gradient of the graph": lambda f: reverse(graph(f)),
    "forward mode of the graph": lambda f: forwards(graph(f)),
    "trace": lambda f: reverse(pt.jit.trace(f, (pt.tensor(X),))),
    "compile": lambda f: reverse(compiled(f)),
    "compiled gradient": lambda f: pt.compile(grad(f)),
}


def check(f, expected, form):
    found = FORMS[form](f)(pt.tensor(X))
    np.testing.assert_allclose(found.detach().numpy(), expected, rtol=1e-12)


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("form", FORMS)
def test_cuts(form):
    for name in CUTS:
        for of_argument in (False, True):
            check(*cut(name, of_argument), form)


@pytest.mark.parametrize("form", FORMS)
def test_writes_to_what_has_no_history(form):
    for f, expected in WRITES.items():
        check(f, expected, form)


def test_second_order():
    def f(x):
        y = (x * 2).detach()
        y.mul_(x)
        return (y * x * x).sum()            # the gradient is 3 * 2 x^3, of which one factor is constant
    expected = np.diag(12 * X * X)
    for g in (f, functionalize(f), graph(f)):
        for second in (hessian, lambda f: jacfwd(jacrev(f)), lambda f: jacrev(jacrev(f))):
            np.testing.assert_allclose(second(g)(pt.tensor(X)).detach().numpy(), expected, rtol=1e-12)
