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
