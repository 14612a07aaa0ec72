"""einsum against NumPy's: drawn equations, the grammar, both formats, gradients, errors."""
import re
import string

import numpy as np
import pytest
from _examples import examples
from hypothesis import given
from hypothesis import strategies as st

import ptcore
from ptcore.autograd import gradcheck, gradgradcheck

pytestmark = pytest.mark.core

SIZES = dict(zip("abcXYZ", (2, 3, 1, 4, 2, 0)))


def numbers(shape, seed=0):
    return np.random.default_rng(seed).integers(-3, 4, shape).astype(float)


@st.composite
def contractions(draw):
    """(equation, shapes): up to three operands, repeated letters, an ellipsis, spaces."""
    letters = draw(st.permutations("abcXYZ"))[:4]
    lead = draw(st.sampled_from([(), (2,), (3, 2)]))
    terms, shapes, dotted = [], [], False
    for _ in range(draw(st.integers(1, 3))):
        labels = draw(st.lists(st.sampled_from(letters), max_size=3))
        place = draw(st.one_of(st.none(), st.integers(0, len(labels))))
        shape = [SIZES[c] for c in labels]
        if place is not None:
            own = lead[len(lead) - draw(st.integers(0, len(lead))):]
            own = tuple(1 if draw(st.integers(0, 3)) == 0 else n for n in own)
            shape[place:place] = own
            labels.insert(place, "...")
            dotted = True
        terms.append("".join(labels))
        shapes.append(tuple(shape))
    equation = draw(st.sampled_from([",", ", ", " , "])).join(terms)
    if draw(st.booleans()):
        seen = sorted({c for t in terms for c in t if c != "."})
        output = draw(st.permutations(seen))[:draw(st.integers(0, len(seen)))]
        if dotted:
            output.insert(draw(st.integers(0, len(output))), "...")
        equation += draw(st.sampled_from(["->", " -> "])) + "".join(output)
    return equation, shapes


@examples(300)
@given(contractions())
def test_drawn(case):
    equation, shapes = case
    data = [numbers(shape, i) for i, shape in enumerate(shapes)]
    want = np.einsum(equation, *data)
    got = ptcore.einsum(equation, *[ptcore.from_numpy(x) for x in data])
    assert got.shape == want.shape
    np.testing.assert_array_equal(got.numpy(), want)


EQUATIONS = [
    ("ij,jk->ik", (3, 4), (4, 2)), ("ij,kj", (3, 4), (2, 4)), ("bij,bjk->bik", (2, 3, 4), (2, 4, 2)),
    ("ii", (3, 3)), ("ii->i", (3, 3)), ("iji->j", (2, 3, 2)), ("ij->ji", (2, 3)), ("ij->", (2, 3)),
    ("i,j->ij", (3,), (2,)), ("i,i->i", (3,), (3,)), ("i,i", (3,), (3,)), (",", (), ()), ("", ()),
    ("...ij,...jk->...ik", (2, 1, 3, 2), (4, 2, 2)), ("i...->...", (2, 3)), ("...->...", (2, 3)),
    ("ij,jk,kl->il", (2, 3), (3, 2), (2, 4)), ("ik,jkl,il->ij", (2, 3), (2, 3, 2), (2, 2)),
    ("bhqd,bhkd->bhqk", (2, 2, 3, 2), (2, 2, 4, 2)), ("Ab,bA", (2, 3), (3, 2)), ("aB", (2, 3)),
    ("ab,b,a,ba->", (2, 3), (3,), (2,), (3, 2)), ("iij,jkk->ik", (2, 2, 3), (3, 2, 2)),
    ("ij,jk->ik", (0, 3), (3, 2)), ("ij,jk->ik", (2, 0), (0, 2)), ("ij,ij->i", (1, 3), (2, 3)),
    ("ij,jk", (2, 1), (3, 2)), ("a,b,c->cab", (2,), (3,), (2,))]


@pytest.mark.parametrize(("equation", "shapes"), [(e, s) for e, *s in EQUATIONS],
                         ids=[e[0] for e in EQUATIONS])
def test_equation(equation, shapes):
    data = [numbers(shape, i) for i, shape in enumerate(shapes)]
    want = np.einsum(equation, *data)
    for layout in (lambda t: t, lambda t: t.flip(0)[::-1] if t.ndim else t):
        tensors = [layout(ptcore.from_numpy(x)) for x in data]
        np.testing.assert_array_equal(ptcore.einsum(equation, *tensors).numpy(), want)
    np.testing.assert_array_equal(ptcore.einsum(equation, tensors).numpy(), want)
    meta = ptcore.einsum(equation, *[t.to("meta") for t in tensors])
    assert (meta.shape, meta.device.type) == (want.shape, "meta")
    if all(0 not in s for s in shapes):
        leaves = [t.requires_grad_() for t in tensors]
        assert gradcheck(lambda *x: ptcore.einsum(equation, *x), leaves)
        assert gradgradcheck(lambda *x: ptcore.einsum(equation, *x), leaves)


@pytest.mark.parametrize("dtype", ["int32", "int64", "float32", "complex64", "complex128"])
def test_dtypes(dtype):
    x, y = numbers((3, 4)).astype(dtype), numbers((4, 2), 1).astype(dtype)
    if dtype.startswith("complex"):
        x = x * (1 + 2j)
    got = ptcore.einsum("ij,jk->ki", ptcore.tensor(x), ptcore.tensor(y))
    assert got.dtype.name == dtype
    np.testing.assert_array_equal(got.numpy(), np.einsum("ij,jk->ki", x, y).astype(dtype))


def test_complex_gradient():
    x = ptcore.tensor(numbers((2, 3)) * (1 - 2j), requires_grad=True)
    y = ptcore.tensor(numbers((3, 2), 1) * (2 + 1j), requires_grad=True)
    assert gradcheck(lambda x, y: ptcore.einsum("ij,jk->i", x, y), (x, y))


def test_sublists():
    x, y = numbers((2, 3)), numbers((3, 4), 1)
    a, b = ptcore.tensor(x), ptcore.tensor(y)
    np.testing.assert_array_equal(ptcore.einsum(a, [0, 1], b, [1, 2], [2, 0]).numpy(), (x @ y).T)
    np.testing.assert_array_equal(ptcore.einsum(a, [0, 1], b, [1, 30]).numpy(), x @ y)
    np.testing.assert_array_equal(
        ptcore.einsum(a, [..., 0], [0, ...]).numpy(), np.einsum(x, [..., 0], [0, ...]))


def test_ellipsis_left_out_of_the_output_is_summed():
    x = numbers((2, 3, 4))
    np.testing.assert_array_equal(ptcore.einsum("...i->i", ptcore.tensor(x)).numpy(), x.sum((0, 1)))


def test_all_letters():
    x = ptcore.ones((1,) * 52)
    assert ptcore.einsum(string.ascii_letters + "->", x).item() == 1


@pytest.mark.parametrize(("args", "error", "message"), [
    (("ij,jk", (2, 3)), ValueError, "einsum: equation 'ij,jk' names 2 operands, got 1"),
    (("ij", (2, 3), (2,)), ValueError, "names 1 operands, got 2"),
    (("ijk", (2, 3)), ValueError, "einsum: 'ijk' in 'ijk' names 3 dimensions, got an operand of 2"),
    (("i", (2, 3)), ValueError, "names 1 dimensions, got an operand of 2"),
    (("ijk...", (2, 3)), ValueError, "names 3 dimensions"),
    (("i1", (2, 3)), ValueError, "einsum: subscripts must be letters"),
    (("i.j", (2, 3)), ValueError, "got '.' in 'i.j'"),
    (("......", (2, 3)), ValueError, "subscripts must be letters"),
    (("ij->ijj", (2, 3)), ValueError, "einsum: the output of 'ij->ijj' names 'j' twice"),
    (("ij->ik", (2, 3)), ValueError, "names 'k', but no operand does"),
    (("ij->i->j", (2, 3)), ValueError, "subscripts must be letters"),
    (("ij,jk", (2, 3), (4, 5)), ValueError, "einsum: 'j' in 'ij,jk' has size 3 and size 4"),
    (("...i,...i", (2, 3), (4, 3)), ValueError, "einsum: a dim under '...' in '...i,...i' has size"),
    (("ii", (2, 3)), ValueError, "einsum: 'i' in 'ii' has size 2 and size 3"),
    (("ii", (1, 3)), ValueError, "einsum: 'i' names dims of sizes 1 and 3 of one operand"),
    (("",), ValueError, "at least one operand"),
    ((3, (2,)), TypeError, "einsum: equation must be str, got int"),
    (("i", 3), TypeError, "einsum: operands must be Tensors, got int"),
    (((2,), 3), TypeError, "must be followed by its list of subscripts, got int"),
    (((2,), [52]), ValueError, r"subscripts must be ints in [0, 51] or Ellipsis, got 52"),
    (((2,), [True]), ValueError, "got True"), (((2,), [-1]), ValueError, "got -1"),
    (("é", (2,)), ValueError, "subscripts must be letters"),
])
def test_errors(args, error, message):
    args = [ptcore.ones(a) if isinstance(a, tuple) else a for a in args]
    with pytest.raises(error, match=re.escape(message)) as found:
        ptcore.einsum(*args)
    assert error is TypeError or isinstance(found.value, RuntimeError)      # PyTorch's class


def test_mixed_dtypes():
    with pytest.raises(RuntimeError, match="einsum: operands must have one dtype, got float32 and int64"):
        ptcore.einsum("i,i", ptcore.ones(2), ptcore.ones(2, dtype=ptcore.int64))
