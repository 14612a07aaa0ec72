"""Ops registered at run time: autograd of second order, meta, the ops mapping, errors."""
import ctypes
import subprocess

import numpy as np
import pytest

import ptcore as pt
from ptcore.ops import register

pytestmark = pytest.mark.core


@pytest.fixture(scope="module")
def cube():
    def spec(input, scale):
        return input.shape, input.dtype

    def kernel(input, scale, out):
        out.copy_(pt.from_numpy(np.asarray(input.numpy() ** 3 * scale)))

    def vjp(g, saved, params, needs):
        return (g * 3 * params[0] * saved["input"] * saved["input"],)
    return register("test_cube(input, scale=1.0)", spec=spec, kernels={"cpu": kernel},
                       types=("float32", "float64"), vjp=vjp, saves=("input",),
                       doc="scale * x**3")


def test_values_and_gradients(cube):
    x = pt.tensor([1., 2., -3.], dtype=pt.float64, requires_grad=True)
    np.testing.assert_allclose(cube(x, 2.0).detach().numpy(), [2, 16, -54])
    assert pt.autograd.gradcheck(cube, (x,))
    assert pt.autograd.gradgradcheck(lambda t: cube(t, scale=0.5), (x,))


def test_meta_mapping_and_errors(cube):
    assert cube(pt.empty(2, 3, device="meta")).shape == (2, 3)
    assert pt.ops["test_cube"].doc == "scale * x**3"
    with pytest.raises(TypeError, match="test_cube"):
        cube(pt.tensor([1]))
    with pytest.raises(TypeError):
        cube()
    with pytest.raises(ValueError, match="already"):
        register("test_cube(input)", spec=None, kernels={})


C_SOURCE = r"""
#include "ptcore/kernel.h"
int doubled(pt_call *call) {
    const pt_view *x = &call->in[0];
    if (x->dtype != PT_FLOAT64 || !x->contiguous) return PT_TYPE_ERROR;
    for (int64_t i = 0; i < x->numel; i++)
        ((double *)call->out[0].data)[i] = 2 * ((const double *)x->data)[i];
    return PT_OK;
}
"""


def test_kernel_in_c(tmp_path):
    from pathlib import Path
    include = Path(__file__).resolve().parents[2] / "ptcore" / "_ops" / "include"
    source, library = tmp_path / "doubled.c", tmp_path / "doubled.so"
    source.write_text(C_SOURCE)
    subprocess.run(["cc", "-shared", "-fPIC", f"-I{include}", str(source), "-o", str(library)],
                   check=True)
    address = ctypes.cast(ctypes.CDLL(str(library)).doubled, ctypes.c_void_p).value
    doubled = register("test_doubled(input)", spec=lambda x: (x.shape, x.dtype),
                          kernels={"cpu": address}, types=("float64",),
                          vjp=lambda g, saved, params, needs: (g * 2,))
    x = pt.tensor([1., 2.], dtype=pt.float64, requires_grad=True)
    y = doubled(x)
    np.testing.assert_array_equal(y.detach().numpy(), [2, 4])
    y.sum().backward()
    np.testing.assert_array_equal(x.grad.numpy(), [2, 2])


def capsule(address, name):
    make = ctypes.pythonapi.PyCapsule_New
    make.restype, make.argtypes = ctypes.py_object, (ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p)
    return make(address, name, None)


@pytest.mark.parametrize("old, abi", [(b"int (pt_call *)", 0), (b"int (pt_call_1 *)", 1), (b"int (pt_call_2 *)", 2),
                                      (b"int (pt_call_4 *)", 4)])
def test_a_kernel_of_another_version_is_refused(old, abi):
    """A capsule's name says which kernel.h it was compiled with; nothing of the op stays behind."""
    op = f"test_versions_{len(old)}_{abi}"
    address = ctypes.cast(ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p)(lambda call: 0), ctypes.c_void_p).value

    def attempt(text):
        return register(f"{op}(input)", spec=lambda x: (x.shape, x.dtype),
                        kernels={"cpu": capsule(address, text)})
    with pytest.raises(RuntimeError, match=rf"compiled against ABI {abi} of ptcore, and the ptcore that runs has ABI 3: "
                                           r"build it again .*'int \(pt_call_3 \*\)', got 'int "):
        attempt(old)
    with pytest.raises(TypeError, match=r"the capsule must hold an int \(pt_call_3 \*\), got double"):
        attempt(b"double (double)")
    assert op not in pt.ops
    attempt(b"int (pt_call_3 *)")
    assert op in pt.ops


def scaled_sum(tensors, weight, out):
    total = weight.clone()
    for t in tensors:
        total = total + t * weight
    out.copy_(total)


def test_a_list_of_tensors():
    """out = w + sum(t * w): edges of the list, gradients by argument, versions of what is saved."""
    asked = []

    def vjp(g, saved, params, needs):
        asked.append(needs)
        assert params == (3,)
        w = saved["weight"]
        return [g * w] * len(saved["tensors"]), g * (1 + sum(saved["tensors"]))
    op = register("test_list(tensors: Tensors, weight, k: Int = 3)", spec=lambda tensors, w, k: (w.shape, w.dtype),
                  kernels={"cpu": lambda tensors, weight, k, out: scaled_sum(tensors, weight, out)},
                  vjp=vjp, saves=("tensors", "weight"))
    parts = [pt.tensor([float(k), 2.], requires_grad=k != 1) for k in range(5)]
    w = pt.tensor([3., 4.], requires_grad=True)
    y = op(parts, w)
    assert y.tolist() == [33, 44] and len(y.grad_fn.next_functions) == 6
    y.sum().backward(retain_graph=True)
    assert asked == [((True, False, True, True, True), True)]
    assert [t.grad if t.grad is None else t.grad.tolist() for t in parts] == [[3, 4], None, [3, 4], [3, 4], [3, 4]]
    assert w.grad.tolist() == [11, 11]
    parts[1].mul_(2)
    with pytest.raises(RuntimeError, match=r"modified by an inplace operation.*saved by TestListBackward0"):
        y.sum().backward()
    only = op([pt.ones(2)], w)
    only.sum().backward()
    assert asked[-1] == ((False,), True)
    assert not op(parts[1:2], pt.ones(2)).requires_grad


def test_a_list_with_too_few_gradients():
    op = register("test_short_list(tensors: Tensors)", spec=lambda tensors: (tensors[0].shape, tensors[0].dtype),
                  kernels={"cpu": lambda tensors, out: out.copy_(tensors[0])},
                  vjp=lambda g, saved, params, needs: ([g],))
    x = pt.ones(2, requires_grad=True)
    with pytest.raises(RuntimeError, match=r"tuple of 2 gradients for the tensors of a list, got 1 of them"):
        op([x, x]).sum().backward()


def test_what_a_call_can_hold():
    """A call has room for 20 parameters, ``out`` among them, and 8 outputs; a shape rule describes as many as the row."""
    def spec(*args):
        return [(args[0].shape, args[0].dtype)]

    wide = ", ".join(["input", *(f"a{k}=1.0" for k in range(19))])
    with pytest.raises(ValueError, match="'test_wide' must have at most 19 parameters, got 20"):
        register(f"test_wide({wide})", spec=spec, kernels={})
    with pytest.raises(ValueError, match="'test_many' must have at most 8 outputs, got 9"):
        register("test_many(input)", spec=spec, kernels={}, fields=tuple("abcdefghi"))
    for name, found in (("test_none", []), ("test_two", [((2,), pt.float32)] * 2)):
        f = register(f"{name}(input)", spec=lambda x, found=found: found, kernels={})
        with pytest.raises(RuntimeError, match=f"{name}: the shape rule must describe 1 outputs, got {len(found)}"):
            f(pt.ones(2))
