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
from ptcore.nn.modules.container import (
    ModuleDict,
    ModuleList,
    ParameterDict,
    ParameterList,
    Sequential,
)
from ptcore.nn.modules.dropout import Dropout
from ptcore.nn.modules.flatten import Flatten, Unflatten
from ptcore.nn.modules.linear import Identity, Linear
from ptcore.nn.modules.loss import CrossEntropyLoss, L1Loss, MSELoss, NLLLoss
from ptcore.nn.modules.module import Module
from ptcore.nn.modules.normalization import LayerNorm

__all__ = [
    "ELU",
    "GELU",
    "CrossEntropyLoss",
    "Dropout",
    "Flatten",
    "Identity",
    "L1Loss",
    "LayerNorm",
    "LeakyReLU",
    "Linear",
    "LogSoftmax",
    "MSELoss",
    "Module",
    "ModuleDict",
    "ModuleList",
    "NLLLoss",
    "ParameterDict",
    "ParameterList",
    "ReLU",
    "Sequential",
    "SiLU",
    "Sigmoid",
    "Softmax",
    "Softplus",
    "Tanh",
    "Unflatten",
]
