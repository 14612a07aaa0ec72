"""The modules of :mod:`ptcore.nn`, one file per family."""

from ptcore.nn.modules.activation import (
    ELU,
    GELU,
    LeakyReLU,
    LogSoftmax,
    ReLU,
    Sigmoid,
    SiLU,
    Softmax,
    Softplus,
    Tanh,
)
from ptcore.nn.modules.batchnorm import (
    BatchNorm1d,
    BatchNorm2d,
    BatchNorm3d,
    InstanceNorm1d,
    InstanceNorm2d,
    InstanceNorm3d,
)
from ptcore.nn.modules.container import (
    ModuleDict,
    ModuleList,
    ParameterDict,
    ParameterList,
    Sequential,
)
from ptcore.nn.modules.conv import (
    Conv1d,
    Conv2d,
    Conv3d,
    ConvTranspose1d,
    ConvTranspose2d,
    ConvTranspose3d,
)
from ptcore.nn.modules.dropout import Dropout
from ptcore.nn.modules.flatten import Flatten, Unflatten
from ptcore.nn.modules.linear import Identity, Linear
from ptcore.nn.modules.loss import CrossEntropyLoss, L1Loss, MSELoss, NLLLoss
from ptcore.nn.modules.module import Module
from ptcore.nn.modules.normalization import GroupNorm, LayerNorm, LocalResponseNorm, RMSNorm
from ptcore.nn.modules.padding import *  # noqa: F403
from ptcore.nn.modules.padding import __all__ as _padding
from ptcore.nn.modules.pooling import *  # noqa: F403
from ptcore.nn.modules.pooling import __all__ as _pooling
from ptcore.nn.modules.resampling import *  # noqa: F403
from ptcore.nn.modules.resampling import __all__ as _resampling

__all__ = [
    *_padding,
    *_pooling,
    *_resampling,
    "ELU",
    "GELU",
    "BatchNorm1d",
    "BatchNorm2d",
    "BatchNorm3d",
    "Conv1d",
    "Conv2d",
    "Conv3d",
    "ConvTranspose1d",
    "ConvTranspose2d",
    "ConvTranspose3d",
    "CrossEntropyLoss",
    "Dropout",
    "Flatten",
    "GroupNorm",
    "Identity",
    "InstanceNorm1d",
    "InstanceNorm2d",
    "InstanceNorm3d",
    "L1Loss",
    "LayerNorm",
    "LeakyReLU",
    "Linear",
    "LocalResponseNorm",
    "LogSoftmax",
    "MSELoss",
    "Module",
    "ModuleDict",
    "ModuleList",
    "NLLLoss",
    "ParameterDict",
    "ParameterList",
    "RMSNorm",
    "ReLU",
    "Sequential",
    "SiLU",
    "Sigmoid",
    "Softmax",
    "Softplus",
    "Tanh",
    "Unflatten",
]
