"""``torch.__future__``: how conversions of modules treat their parameters; only PyTorch's default is supported."""
__all__ = ["get_overwrite_module_params_on_conversion", "get_swap_module_params_on_conversion",
           "set_overwrite_module_params_on_conversion", "set_swap_module_params_on_conversion"]


def get_overwrite_module_params_on_conversion():
    """Whether ``Module.to`` makes new parameters in place of changing existing ones: False."""
    return False


def set_overwrite_module_params_on_conversion(value):
    """Takes False alone."""
    if value:
        raise NotImplementedError("torch.__future__.set_overwrite_module_params_on_conversion: ptcore's modules keep "
                                  "their parameters, and change what they hold")


def get_swap_module_params_on_conversion():
    """Whether ``Module.to`` swaps parameters with new ones: False."""
    return False


def set_swap_module_params_on_conversion(value):
    """Takes False alone."""
    if value:
        raise NotImplementedError("torch.__future__.set_swap_module_params_on_conversion: ptcore's modules keep their "
                                  "parameters, and change what they hold")
