"""``Module.__getattr__`` in C, and the slot by which it is fast: see ``_attributes.h``."""

cdef extern from "nn/modules/_attributes.h":
    object pt_make_getattr(object)
    bint pt_has_slot(object)


def getattr_of(cls):
    """The method ``__getattr__`` of a class whose instances have tables of parameters, buffers and children."""
    return pt_make_getattr(cls)


def has_slot(cls):
    """Whether the attributes of a class's instances are read by the slot."""
    return pt_has_slot(cls)
