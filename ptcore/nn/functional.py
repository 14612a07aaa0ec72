"""Functions of neural networks: the compiled ops themselves, and a few that are made of them."""
from ptcore import _lazy
from ptcore._names.functional import *
from ptcore._ops.functions import sigmoid as sigmoid
from ptcore._ops.functions import tanh as tanh

__getattr__, __dir__ = _lazy.names(__name__)
