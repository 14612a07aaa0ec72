"""Conjugation and its flags: it is carried out at once, and no tensor is marked as conjugated."""
from ptcore._ops.call.offer import overridable
from ptcore._ops.checked import need_tensors
from ptcore._ops.functions import conj_physical_function_ as conj_physical_  # noqa: F401  (pickles name them here)
from ptcore._ops.functions import resolve_conj, resolve_neg  # noqa: F401


@overridable
def is_conj(self):
    """Always False: conjugation is carried out, never marked."""
    need_tensors("is_conj", input=self)
    return False


@overridable
def is_neg(self):
    """Always False: negation is carried out, never marked."""
    need_tensors("is_neg", input=self)
    return False
