"""Functions of neural networks: the compiled ops themselves, and a few that are made of them."""
from ptcore._names.functional import *
from ptcore._ops.functions import sigmoid as sigmoid
from ptcore._ops.functions import tanh as tanh
from ptcore.nn._attention import *
from ptcore.nn._normalization import *
from ptcore.nn._variants import *
