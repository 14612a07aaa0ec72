"""The modules of :mod:`ptcore.nn`, one file per family."""
# ruff: noqa: F403

from ptcore.nn.modules import (
    activation,
    adaptive,
    attention,
    batchnorm,
    container,
    conv,
    distance,
    dropout,
    embedding,
    flatten,
    lazy,
    linear,
    loss,
    normalization,
    padding,
    pooling,
    rectifier,
    resampling,
    rnn,
    transformer,
    utils,
)
from ptcore.nn.modules.activation import *
from ptcore.nn.modules.adaptive import *
from ptcore.nn.modules.attention import *
from ptcore.nn.modules.batchnorm import *
from ptcore.nn.modules.container import *
from ptcore.nn.modules.conv import *
from ptcore.nn.modules.distance import *
from ptcore.nn.modules.dropout import *
from ptcore.nn.modules.embedding import *
from ptcore.nn.modules.flatten import *
from ptcore.nn.modules.lazy import *
from ptcore.nn.modules.linear import *
from ptcore.nn.modules.loss import *
from ptcore.nn.modules.module import Module
from ptcore.nn.modules.normalization import *
from ptcore.nn.modules.padding import *
from ptcore.nn.modules.pooling import *
from ptcore.nn.modules.rectifier import *
from ptcore.nn.modules.resampling import *
from ptcore.nn.modules.rnn import *
from ptcore.nn.modules.transformer import *

# A list that type checkers can read.
__all__ = ["Module"]
__all__ += activation.__all__
__all__ += adaptive.__all__
__all__ += attention.__all__
__all__ += batchnorm.__all__
__all__ += container.__all__
__all__ += conv.__all__
__all__ += distance.__all__
__all__ += dropout.__all__
__all__ += embedding.__all__
__all__ += flatten.__all__
__all__ += lazy.__all__
__all__ += linear.__all__
__all__ += loss.__all__
__all__ += normalization.__all__
__all__ += padding.__all__
__all__ += pooling.__all__
__all__ += rectifier.__all__
__all__ += resampling.__all__
__all__ += rnn.__all__
__all__ += transformer.__all__
__all__.remove("LazyModuleMixin")
