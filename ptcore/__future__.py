"""How conversions of modules treat their parameters, as in ``torch.__future__``. Settings of the whole process."""

__all__ = ["get_overwrite_module_params_on_conversion", "get_swap_module_params_on_conversion",
           "set_overwrite_module_params_on_conversion", "set_swap_module_params_on_conversion"]

_settings = {"overwrite": False, "swap": False}


def set_overwrite_module_params_on_conversion(value):
    """Sets whether conversions such as :meth:`~ptcore.nn.Module.to` make new parameters in place of changing ``data``.

    Parameters
    ----------
    value : bool
    """
    _settings["overwrite"] = value


def get_overwrite_module_params_on_conversion():
    """Whether conversions make new parameters. False by default."""
    return _settings["overwrite"]


def set_swap_module_params_on_conversion(value):
    """Sets whether conversions, and ``load_state_dict``, exchange parameters with new ones by
    :func:`ptcore.utils.swap_tensors`, so that they stay the same objects whatever their class becomes.

    Parameters
    ----------
    value : bool
    """
    _settings["swap"] = value


def get_swap_module_params_on_conversion():
    """Whether conversions exchange parameters with new ones. False by default."""
    return _settings["swap"]
