"""Helpers around the tensor library: ``data`` (datasets and loaders), ``checkpoint`` and
``hooks`` (removable handles). Submodules are imported at first use."""

__all__ = ["checkpoint", "data", "dlpack", "hooks"]


def __getattr__(name):
    if name in __all__:
        from importlib import import_module

        return import_module(f"{__name__}.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__():
    return sorted([*globals(), *__all__])
