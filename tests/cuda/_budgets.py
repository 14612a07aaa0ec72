"""How many instructions the main paths of hot kernels may have (``_machine_code.py``), beside what a card can run.

A multiprocessor of an H100 begins 128 instructions of threads a clock, of which 70 % is what kernels reach that wait
for memory as well, while a copy within the device moves 13 bytes a clock and multiprocessor (3.0 TB/s): 6.9
instructions for each byte, 27 for an element of bfloat16 that is read and written. A kernel with more is bound by them,
and gets the quotient of a copy's speed: a prediction, which ``benchmarks/RESULTS-gpu.md`` keeps apart from what was
measured.

A product of 16 x 8 x 16 by tensor cores takes a warp's scheduler 4 clocks: with over 2.8 instructions for each of them,
all included, the instructions are the bound.
"""
import re
from typing import NamedTuple

import _machine_code
from _recorded import held

BYTE = 128 * 0.7 / 13
PRODUCT = 4 * 0.7


class Budget(NamedTuple):
    program: str
    types: str
    kernel: str
    width: int                  # bytes of the widest access
    moved: float                # bytes that such accesses move for an element; 0: `most` is for each product
    memory: float               # bytes that memory moves for an element
    most: float                 # instructions for each element, as NVRTC 13.0 makes them for sm_90, rounded up
    longest: bool = False       # what most elements take is the longer way
    doubles: bool = False       # arithmetic of float64, which runs at half the speed here and at 1/64 on other cards

    @property
    def roofline(self):
        """Instructions for each element (or product) below which something else is the bound."""
        return self.memory * BYTE if self.moved else PRODUCT

    @property
    def predicted(self):
        """Part of a copy's speed, or of tensor cores'."""
        return min(1.0, self.roofline / self.most)


# A row whose path moves nothing for an element counts instructions for each product by tensor cores.
BUDGETS = [Budget(*row) for row in (
    ("elementwise:add", "float", "elementwise_dense", 16, 12, 12, 8),
    ("elementwise:add", "bfloat16", "elementwise_dense", 16, 6, 6, 11),
    ("elementwise:add", "bfloat16", "elementwise_packed", 16, 6, 6, 14),
    ("elementwise:add", "float", "elementwise_strided", 4, 12, 12, 43),
    ("elementwise:exp", "float", "elementwise_dense", 16, 8, 8, 31),
    ("elementwise:gelu", "bfloat16", "elementwise_dense", 16, 4, 4, 27.7),
    ("elementwise:tanh", "bfloat16", "elementwise_dense", 16, 4, 4, 17),
    ("elementwise:pow", "bfloat16", "elementwise_dense", 16, 6, 6, 35.4),
    ("elementwise:eq", "uint8_t", "elementwise_dense", 16, 3, 3, 13),
    ("copy", "bfloat16 float", "copy_dense", 16, 4, 6, 11),
    ("transpose", "int16_t", "transpose", 4, 4, 4, 20),
    ("softmax", "bfloat16", "softmax_two", 16, 4, 4, 19.9),
    ("softmax_backward", "bfloat16", "softmax_backward_two", 16, 6, 6, 14.2),
    ("layer_norm", "bfloat16 bfloat16", "layer_norm_two", 16, 8, 4, 27),
    ("reduce_sum", "float float", "sum_rows", 16, 4, 4, 4.9, False, True),
    ("reduce_extreme", "bfloat16", "amax_rows", 16, 2, 2, 3.2),
    ("channel_norm", "bfloat16 bfloat16", "channel_moments_rows", 16, 2, 2, 7.1, False, True),
    ("channel_norm", "bfloat16 bfloat16", "channel_gradients_rows", 16, 4, 4, 8.4, False, True),
    ("cumulate", "float", "cumsum_tiles", 16, 8, 8, 24.4, False, True),
    ("loss", "bfloat16", "cross_entropy_wide", 16, 2, 2, 18.3, True),
    ("loss", "bfloat16", "cross_entropy_gradient_wide", 16, 4, 4, 10.6),
    ("step:adam", "float", "step", 16, 28, 28, 38),
    ("random", "bfloat16", "random_dropout", 16, 4, 5, 32.5),
    ("attention_tensor", "bfloat16", "attention_tensor_64", 16, 0, 0, 6.6),
    ("attention_tensor", "bfloat16", "attention_tensor_128", 16, 0, 0, 5.6),
    ("attention_tensor_backward", "bfloat16", "attention_query_tensor_64", 16, 0, 0, 4.9),
    ("attention_tensor_backward", "bfloat16", "attention_key_tensor_64", 16, 0, 0, 4.8),
    ("attention_tensor", "float", "attention_tensor_64", 16, 0, 0, 5.8),
    ("attention_tensor_backward", "float", "attention_key_tensor_64", 16, 0, 0, 5.6),
    ("convolution_tensor", "bfloat16", "convolve_tensor", 16, 0, 0, 5.1),
    ("convolution_weight_tensor", "bfloat16", "convolve_weight_tensor", 16, 0, 0, 7.1),
)]

# Kernels that divide integers of 64 bits in a loop, and in how many places: those for 2**31 elements or more. A mean of
# integers is one.
DIVIDING = {r"convolve_far|convolve_each_far|pad_\w+_far": 99}


def may_divide(name, types):
    """In how many places a kernel may."""
    if name.startswith("pool_mean") and types[0] in ("uint64_t", "int64_t"):
        return 99
    return next((most for pattern, most in DIVIDING.items() if re.fullmatch(pattern, name)), 0)


def too_much(program, types, cubin):
    """What of a program's machine code for sm_90 is against the rules; ``types`` are names of ``_programs.CPP``."""
    found, wrong = _machine_code.kernels(cubin), []
    for name, kernel in found.items():
        if name.startswith("$"):                # called by kernels
            continue
        divisions = sum(i.divides for i in kernel.looped)
        if divisions > may_divide(name, types):
            wrong.append(f"{name}: {divisions} divisions of 64 bits in loops")
        if "_tensor" in name and not any(i.product for i in kernel.main_path()):
            wrong.append(f"{name}: no product by tensor cores in the main path")
    for row in BUDGETS:
        if (row.program, row.types) == (program, " ".join(types)):
            wrong += over(row, found[row.kernel])
    return wrong


def over(row, kernel):
    """How a kernel's main path is beyond its row, as lines."""
    path = kernel.main_path(row.longest)
    width = max(i.bytes for i in path)
    moved = sum(i.bytes for i in path if i.bytes == width)
    count = moved / row.moved if row.moved else sum(i.product for i in path)
    each = kernel.cost(path) / count if count else float("inf")
    wrong = []
    if width < row.width:
        wrong.append(f"{row.kernel}: the widest access has {width} bytes, not {row.width}")
    if not row.doubles and (doubles := sum(i.double for i in path)):
        wrong.append(f"{row.kernel}: {doubles} instructions of float64")
    unit = "element" if row.moved else "product"
    try:
        held(f"{row.kernel}: instructions of {row.program}, {row.types}, for each {unit}", round(each, 2), row.most)
    except AssertionError as e:
        wrong.append(str(e))
    return wrong


def predictions():
    """The first cells of each row of the table in ``benchmarks/RESULTS-gpu.md``, before what was measured."""
    lines = []
    for row in BUDGETS:
        unit, of = ("an element", "a copy") if row.moved else ("a product", "tensor cores")
        lines.append(f"| {row.kernel} of {row.program} | {row.types.replace('_t', '')} | {row.most} for {unit} | "
                     f"{row.roofline:.1f} | {row.predicted:.2f} of {of} |")
    return lines


if __name__ == "__main__":
    print("\n".join(predictions()))
