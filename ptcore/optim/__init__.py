"""Optimisers and learning-rate schedules."""

from ptcore import _lazy
from ptcore.optim import lr_scheduler
from ptcore.optim.adadelta import Adadelta
from ptcore.optim.adafactor import Adafactor
from ptcore.optim.adagrad import Adagrad
from ptcore.optim.adam import Adam
from ptcore.optim.adamax import Adamax
from ptcore.optim.adamw import AdamW
from ptcore.optim.asgd import ASGD
from ptcore.optim.lbfgs import LBFGS
from ptcore.optim.muon import Muon
from ptcore.optim.nadam import NAdam
from ptcore.optim.optimizer import Optimizer
from ptcore.optim.radam import RAdam
from ptcore.optim.rmsprop import RMSprop
from ptcore.optim.rprop import Rprop
from ptcore.optim.sgd import SGD

__getattr__, __dir__ = _lazy.names(__name__)

__all__ = [
    "ASGD",
    "LBFGS",
    "SGD",
    "Adadelta",
    "Adafactor",
    "Adagrad",
    "Adam",
    "AdamW",
    "Adamax",
    "Muon",
    "NAdam",
    "Optimizer",
    "RAdam",
    "RMSprop",
    "Rprop",
    "lr_scheduler",
    "swa_utils",
]
