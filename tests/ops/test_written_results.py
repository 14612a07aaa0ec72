"""Results that are written to in place before their backward: each row's, alone and in place.

No gradient is wrong in silence: a program raises one of autograd's errors, or its gradients are those with copies of the
results. Which programs run in PyTorch: test_parity_written_results.py.
"""
import itertools

import numpy as np
import pytest
from _cases import case_id, dtypes, function, inplace_function
from _walk import walk
from _written import WRITES, Refused, wrong
from test_gradient import NOT_REAL_RESULTS, ROWS_UNDER_TEST, differentiable_arguments, small_cases

import ptcore as pt
from ptcore._ops.table.expr import uses
from ptcore.autograd import gradcheck, gradgradcheck

pytestmark = pytest.mark.core
F = pt.nn.functional
WALKED = [r for r in ROWS_UNDER_TEST if r.name not in NOT_REAL_RESULTS and {"float64", "complex128"} & set(dtypes(r))]


def calls(row, form):
    """(name, call of a list of inputs, inputs) of the row's first small cases."""
    dtype = "float64" if "float64" in dtypes(row) else "complex128"
    for case in small_cases(row)[:2]:
        call, inputs = differentiable_arguments(row, case, dtype, "contiguous", form)
        if inputs:
            yield case_id(row, case), lambda xs, call=call: call(*xs), inputs
            if dtype == "float64" and "bfloat16" in dtypes(row):        # rules compute results again in half types
                yield f"{case_id(row, case)} bfloat16", lambda xs, call=call: call(*xs), [
                    x.detach().to(pt.bfloat16).requires_grad_() for x in inputs]


def keeps_no_result(row):
    """Whether the texts of a row's derivative do not name its result, so that a write to it does no harm."""
    return row.kind == "elementwise" and bool(row.partial) and not any(
        text and "out" in uses(text)[0] for text in row.partial)


def check(row, form, runs):
    """Writes to each result of the row's calls. ``runs``: no write is refused, and no backward."""
    for (name, call, inputs), number, (write, f) in itertools.product(calls(row, form), range(3), WRITES.items()):
        got, text = wrong(pt, call, inputs, number, f, 2e-2 if "bfloat16" in name else 1e-9)
        assert text is None, f"{name}, result {number}, {write}: {text}"
        if isinstance(got, Refused) and got.where == "call":
            continue                    # another dtype beside bfloat16, or a result that does not fit in place
        assert not (runs and isinstance(got, Refused)), f"{name}, {write}: {got}"


@walk("row", [pytest.param(r, id=r.name) for r in WALKED])
@pytest.mark.outer
def test_results(row):
    check(row, function, keeps_no_result(row))


@walk("row", [pytest.param(r, id=r.name) for r in WALKED if r.inplace])
def test_results_in_place(row):
    def form(row):
        return lambda x, *args, **kwargs: inplace_function(row)(x.clone(), *args, **kwargs)
    check(row, form, keeps_no_result(row))


def recurrent(name, *settings):
    """A module of one step or of a sequence, with its weights as they are made from a seed."""
    pt.manual_seed(0)
    return getattr(pt.nn, name)(*settings).double()


def hidden(result):
    return result[0] if isinstance(result, tuple) else result


# What composed results are made of keeps no result in PyTorch: (call, shapes of its arguments).
WRITABLE = {
    "div": (pt.div, [(2, 3), (2, 3)]), "div of a number": (lambda x: 2 / x, [(2, 3)]), "sinc": (pt.sinc, [(5,)]),
    "erfinv": (lambda x: pt.erfinv(x * 0.5), [(4,)]), "logit": (lambda x: pt.logit(x.sigmoid()), [(4,)]),
    "logit with eps": (lambda x: pt.logit(x.sigmoid(), 1e-3), [(4,)]), "frexp": (lambda x: pt.frexp(x)[0], [(4,)]),
    "normalize": (F.normalize, [(2, 3)]), "local_response_norm": (lambda x: F.local_response_norm(x, 2), [(1, 4, 3)]),
    "cov": (pt.cov, [(2, 4)]), "corrcoef": (pt.corrcoef, [(2, 4)]), "cond": (pt.linalg.cond, [(3, 3)]),
    "cosine_similarity": (F.cosine_similarity, [(2, 3), (2, 3)]),
    "attention": (F.scaled_dot_product_attention, [(2, 3, 4)] * 3),
    "attention of heads": (F.scaled_dot_product_attention, [(1, 2, 3, 4)] * 3),
    "attention, causal": (lambda *x: F.scaled_dot_product_attention(*x, is_causal=True), [(3, 4)] * 3),
    "attention with a mask": (F.scaled_dot_product_attention, [(2, 3, 4)] * 3 + [(3, 3)]),
    **{name: (lambda x, h, name=name: recurrent(name, 3, 2)(x, h), [(2, 3), (2, 2)]) for name in ("GRUCell", "RNNCell")},
    "LSTMCell": (lambda x, h, c: recurrent("LSTMCell", 3, 2)(x, (h, c))[0], [(2, 3), (2, 2), (2, 2)]),
    "LSTMCell's cell": (lambda x, h, c: recurrent("LSTMCell", 3, 2)(x, (h, c))[1], [(2, 3), (2, 2), (2, 2)]),
    **{name: (lambda x, name=name: hidden(recurrent(name, 3, 2)(x)), [(4, 2, 3)]) for name in ("GRU", "RNN", "LSTM")},
    "RNN of relu": (lambda x: hidden(recurrent("RNN", 3, 2, 1, "relu")(x)), [(4, 2, 3)])}
KINDS = {"relu_": lambda y: y.relu_(), "mul_": lambda y: y.mul_(2.5), "exp_": lambda y: y.exp_(),
         "a part": lambda y: (y[..., 0].mul_(3) if y.ndim else y.mul_(3), y)[1]}


@pytest.mark.parametrize("name", WRITABLE)
def test_results_that_can_be_written_to(name):
    """First and second derivatives, by differences."""
    call, shapes = WRITABLE[name]
    draw = np.random.default_rng(2)
    inputs = [pt.tensor(draw.uniform(0.3, 1.5, shape), requires_grad=True) for shape in shapes]
    for kind, write in KINDS.items():
        assert gradcheck(lambda *xs, write=write: write(call(*xs)), inputs), kind
        assert gradgradcheck(lambda *xs, write=write: write(call(*xs)), inputs), kind


def test_dropout_of_attention_is_drawn_once():
    """The result is made again with the elements that were dropped before."""
    q, k, v = (pt.tensor(np.random.default_rng(n).standard_normal((2, 5, 4)), requires_grad=True) for n in range(3))

    def gradients(copied):
        pt.manual_seed(1)
        y = F.scaled_dot_product_attention(q, k, v, dropout_p=0.5)
        y = y.clone() if copied else y
        y.mul_(y.detach() + 3)
        return [g.numpy() for g in pt.autograd.grad(y.sum(), (q, k, v))]

    for a, b in zip(gradients(False), gradients(True)):
        np.testing.assert_allclose(a, b, rtol=1e-12)


@pytest.mark.parametrize("write", [
    lambda a, x: a.mul_(a), lambda a, x: a.addcmul_(a, x), lambda a, x: a.addcmul_(x, a), lambda a, x: a.addcdiv_(a, x),
    lambda a, x: a.addcdiv_(x, a), lambda a, x: a.div_(a), lambda a, x: a.pow_(a), lambda a, x: a.mul_(a[:]),
    lambda a, x: a.float_power_(a), lambda a, x: a.xlogy_(a), lambda a, x: a[1:].mul_(a[:-1])])
def test_another_operand_in_the_memory_that_is_written_to(write):
    x = pt.tensor([1.5, 2.0], dtype=pt.float64, requires_grad=True)
    a = x * 1
    write(a, x + 1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        a.sum().backward()


def test_an_operand_of_another_dtype_in_the_memory_that_is_written_to():
    """It is cast for the rule, but not after the write."""
    x = pt.tensor([1.5, 2.0], requires_grad=True)
    a = x * 1
    a.addcmul_(a, pt.tensor([3.0, 4.0], dtype=pt.float64, requires_grad=True))
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        a.sum().backward()


@pytest.mark.parametrize(("write", "right"), [
    (lambda a: a.add_(a), 2), (lambda a: a.sub_(a), 0), (lambda a: a.lerp_(a, 0.3), 1), (lambda a: a.copy_(a), 1)])
def test_another_operand_whose_value_is_not_needed(write, right):
    x = pt.tensor([1.5, 2.0], requires_grad=True)
    a = x * 1
    write(a)
    a.sum().backward()
    assert x.grad.tolist() == [right, right]


def test_what_no_gradient_needs_is_not_copied():
    """In place: the old value is kept for the gradient of the factor alone."""
    from ptcore.autograd.graph import saved_tensors_hooks
    kept = []
    x = pt.ones(3, requires_grad=True)
    for factor in (pt.ones(3), pt.ones(3, requires_grad=True)):
        with saved_tensors_hooks(lambda t: (kept.append(t), t)[1], lambda t: t):
            (x * 1).mul_(factor)        # the first product keeps a number alone
    assert len(kept) == 3
