"""The fast path of ``nn.MultiheadAttention``, whose switch is kept: there is one path here."""
__all__ = ["get_fastpath_enabled", "set_fastpath_enabled"]

_enabled = [True]


def get_fastpath_enabled():
    """What `set_fastpath_enabled` has set."""
    return _enabled[0]


def set_fastpath_enabled(value):
    """Keeps a bool; results do not depend on it."""
    _enabled[0] = bool(value)
