"""Where ptcore is meant to differ: the entry, the phases, what the comparison then says, and the reason.

The page "Differences from PyTorch" lists the same entries with the same reasons (``test_parity_op_db.py``).
"""
import re

NUMBER = "A number may stand in the place of either tensor, as in NumPy's function."
OVERLAP = "``out=`` that shares memory with an input gets what a new tensor would hold."
SMOOTH = "Memory of any layout is normalised."
RESIZED = "A resized ``out=`` holds the result (PyTorch's call fails)."
ANY_SHAPE = "The value may be a tensor of any shape that broadcasts."
# Reasons that take nothing from a program for PyTorch, whose call raises; and those that a method has no part in, as
# it has a tensor in front and no ``out=``.
MORE = {NUMBER, OVERLAP, SMOOTH, RESIZED, ANY_SHAPE}
OF_FUNCTIONS = {NUMBER, OVERLAP}
LOSES = "A complex result is not written to a real ``out=``."

BY_NUMBER = ("atan2", "clamp_max", "clamp_min", "copysign", "eq", "fmax", "fmin", "fmod", "gcd", "ge", "gt", "heaviside",
             "igamma", "igammac", "lcm", "ldexp", "le", "logical_and", "logical_or", "logical_xor", "lt", "maximum",
             "minimum", "ne")
OVERLAPPING = ("cat", "gather", "index_select", "kthvalue", "masked_select", "take")

DIFFERENCES = {
    **dict.fromkeys(BY_NUMBER, (("errors",), r"no error, expected Exception: $", NUMBER)),
    **dict.fromkeys(OVERLAPPING, (("errors",), r"no error, .*(unsupported operation|single memory location)", OVERLAP)),
    **dict.fromkeys(("all", "any"), (
        ("forward", "method", "out", "layouts"), r"dtype ptcore.bool, expected torch.uint8|must have dtype bool, got uint8",
        "The result is bool for uint8 as well, as in NumPy.")),
    **dict.fromkeys(("logsumexp", "mean"), (("out",), r"complex\d+ can't be cast to out's dtype float", LOSES)),
    "addbmm": (("inplace",), r"the result has shape", "The form in place does not change the tensor's shape."),
    "native_batch_norm": (("out",), "^no error, expected", RESIZED),
    "native_group_norm": (("layouts",), "^no error, expected", SMOOTH),
    "linalg.matrix_power": (("out",), "out must have dtype", "``out=`` must have the result's dtype for exponent 0 as well."),
    "masked_fill": (("errors",), r"no error, .*only supports a 0-dimensional value tensor", ANY_SHAPE),
}


def reason(name, phase, text):
    """Why a result is meant to differ, or None where it is wrong."""
    phases, pattern, why = DIFFERENCES.get(name, ((), "", None))
    return why if phase in phases and re.search(pattern, text) else None
