"""Conjugation and its marks: it is carried out at once, and nothing is marked."""
from ptcore._ops.call.offer import overridable


def never(self):
    """False: conjugation and negation are carried out, never marked."""
    return False


def itself(self, *args):
    """The tensor itself, which is dense and has no marks to resolve."""
    return self


@overridable
def conj_physical(self):
    """Complex conjugates; real tensors are themselves."""
    return self.conj()


@overridable
def conj_physical_(self):
    """Complex conjugates in place."""
    return self.copy_(self.conj()) if self.dtype.is_complex else self


is_conj = is_neg = never
resolve_conj = resolve_neg = to_dense = itself
