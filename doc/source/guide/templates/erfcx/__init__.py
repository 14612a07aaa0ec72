"""The scaled complementary error function as an op with gradients of every order."""
import math

import ptcore

from erfcx import _kernels


def _spec(input):
    return input.shape, input.dtype


def _vjp(g, saved, params, needs):
    x = saved["input"]
    return (g * (2 * x * erfcx(x) - 2 / math.sqrt(math.pi)),)


erfcx = ptcore.ops.register("my_erfcx(input)", spec=_spec, kernels={"cpu": _kernels.erfcx},
                            types=("float32", "float64"), vjp=_vjp, saves=("input",))
