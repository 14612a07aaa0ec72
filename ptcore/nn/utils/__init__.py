"""Helpers for modules and their parameters: clipping of gradients, conversion to one vector, parametrisation, pruning,
fusion, calls with other parameters, packed sequences.

``parametrizations``, ``parametrize``, ``prune`` and ``stateless`` are modules, imported at their first use.
"""

from ptcore import _lazy
from ptcore.nn.utils import rnn
from ptcore.nn.utils.clip_grad import (
    clip_grad_norm,
    clip_grad_norm_,
    clip_grad_value_,
    clip_grads_with_norm_,
    get_total_norm,
)
from ptcore.nn.utils.convert_parameters import (
    parameters_to_vector,
    vector_to_parameters,
)
from ptcore.nn.utils.fusion import (
    fuse_conv_bn_eval,
    fuse_conv_bn_weights,
    fuse_linear_bn_eval,
    fuse_linear_bn_weights,
)
from ptcore.nn.utils.init import skip_init
from ptcore.nn.utils.memory_format import convert_conv2d_weight_memory_format, convert_conv3d_weight_memory_format
from ptcore.nn.utils.spectral_norm import remove_spectral_norm, spectral_norm
from ptcore.nn.utils.weight_norm import remove_weight_norm, weight_norm

__all__ = [
    "clip_grad_norm",
    "clip_grad_norm_",
    "clip_grad_value_",
    "clip_grads_with_norm_",
    "convert_conv2d_weight_memory_format",
    "convert_conv3d_weight_memory_format",
    "fuse_conv_bn_eval",
    "fuse_conv_bn_weights",
    "fuse_linear_bn_eval",
    "fuse_linear_bn_weights",
    "get_total_norm",
    "parameters_to_vector",
    "parametrizations",
    "parametrize",
    "prune",
    "remove_spectral_norm",
    "remove_weight_norm",
    "rnn",
    "skip_init",
    "spectral_norm",
    "stateless",
    "vector_to_parameters",
    "weight_norm",
]

__getattr__, __dir__ = _lazy.names(__name__)
