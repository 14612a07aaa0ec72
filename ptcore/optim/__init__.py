"""Optimisers and learning-rate schedules."""

from ptcore.optim import lr_scheduler
from ptcore.optim.adam import Adam
from ptcore.optim.adamw import AdamW
from ptcore.optim.optimizer import Optimizer
from ptcore.optim.sgd import SGD

__all__ = ["SGD", "Adam", "AdamW", "Optimizer", "lr_scheduler"]
