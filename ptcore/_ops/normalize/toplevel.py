"""Functions that PyTorch has at its top level as well, with arguments in another order."""
from ptcore._ops.call.offer import overridable
from ptcore._ops.functions import layer_norm as layer_norm_of
from ptcore._ops.normalize import functions


@overridable
def layer_norm(input, normalized_shape, weight=None, bias=None, eps=1e-05, cudnn_enable=True):
    """See :func:`ptcore.nn.functional.layer_norm`."""
    return layer_norm_of(input, normalized_shape, weight, bias, eps)


@overridable
def rms_norm(input, normalized_shape, weight=None, eps=None):
    """See :func:`ptcore.nn.functional.rms_norm`."""
    return functions.rms_norm(input, normalized_shape, weight, eps)


@overridable
def group_norm(input, num_groups, weight=None, bias=None, eps=1e-05, cudnn_enabled=True):
    """See :func:`ptcore.nn.functional.group_norm`."""
    return functions.group_norm(input, num_groups, weight, bias, eps)


@overridable
def batch_norm(input, weight, bias, running_mean, running_var, training, momentum, eps, cudnn_enabled):
    """See :func:`ptcore.nn.functional.batch_norm`."""
    return functions.batch_norm(input, running_mean, running_var, weight, bias, training, momentum, eps)


@overridable
def instance_norm(input, weight, bias, running_mean, running_var, use_input_stats, momentum, eps, cudnn_enabled):
    """See :func:`ptcore.nn.functional.instance_norm`."""
    return functions.instance_norm(input, running_mean, running_var, weight, bias, use_input_stats, momentum, eps)
