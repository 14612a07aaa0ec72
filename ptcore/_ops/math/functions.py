"""Conjugation and its flags: it is carried out at once, and no tensor is marked as conjugated."""
from ptcore._ops.call.offer import overridable
from ptcore._ops.checked import need_tensors
from ptcore._ops.functions import resolve_conj, resolve_neg  # noqa: F401  (pickles name them here)


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


@overridable
def to_dense(self, *args):
    """The tensor itself, which is dense."""
    return self


@overridable
def conj_physical(self):
    """Complex conjugates; a real tensor is returned as it is."""
    return self.conj()


@overridable
def conj_physical_(self):
    """Complex conjugates in place."""
    need_tensors("conj_physical_", input=self)
    return self.copy_(self.conj()) if self.dtype.is_complex else self

