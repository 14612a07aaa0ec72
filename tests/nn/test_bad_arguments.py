"""Wrong arguments of modules, losses, schedules and data sets: the error names what was called."""
import numpy as np
import pytest

import ptcore as pt
from ptcore import nn
from ptcore.nn import functional as F
from ptcore.optim import SGD, lr_scheduler
from ptcore.utils.data import TensorDataset, random_split

pytestmark = pytest.mark.core


def optimizer():
    return SGD([pt.zeros(1, requires_grad=True)], lr=1.0)


@pytest.mark.parametrize(("call", "error", "text"), [
    (lambda: nn.Linear(2.5, 3), TypeError, "Linear: in_features must be int, got float"),
    (lambda: nn.Linear(2, "a"), TypeError, "Linear: out_features must be int, got str"),
    (lambda: nn.Linear(-1, 3), RuntimeError, "Linear: in_features must be non-negative, got -1"),
    (lambda: nn.Linear(2, pt.tensor(1.5)), TypeError, "Linear: out_features must be int, got Tensor"),
    (lambda: nn.LayerNorm("a"), TypeError, "LayerNorm: normalized_shape must be int, got str"),
    (lambda: nn.LayerNorm([2, -3]), RuntimeError, "LayerNorm: normalized_shape must be non-negative, got -3"),
    (lambda: nn.LayerNorm([2, None]), TypeError, "LayerNorm: normalized_shape must be int, got NoneType"),
    (lambda: nn.Embedding(2, 3, sparse=True), NotImplementedError, "Embedding: sparse must be False, got True"),
    (lambda: nn.EmbeddingBag(2, 3, sparse=True), NotImplementedError, "EmbeddingBag: sparse must be False, got True"),
    (lambda: nn.Embedding.from_pretrained(pt.ones(2, 3), sparse=True), NotImplementedError, "Embedding: sparse"),
    (lambda: nn.EmbeddingBag.from_pretrained(pt.ones(2, 3), sparse=True), NotImplementedError, "EmbeddingBag: sparse"),
    (lambda: nn.functional.embedding(pt.tensor([1]), pt.ones(2, 3), sparse=True), NotImplementedError,
     "^embedding: sparse must be False, got True"),
    (lambda: nn.functional.embedding_bag(pt.tensor([[1]]), pt.ones(2, 3), max_norm=1.0, sparse=True),
     NotImplementedError, "^embedding_bag: sparse must be False, got True"),
    (lambda: pt.embedding(pt.ones(2, 3), pt.tensor([1]), sparse=True), NotImplementedError, "^embedding: sparse"),
    (lambda: nn.Dropout("a"), TypeError, "Dropout: p must be a number, got str"),
    (lambda: nn.MSELoss()(pt.ones(2), pt.ones(3)), RuntimeError, "mse_loss: .*2.*3"),
    (lambda: nn.L1Loss()(pt.ones(2), pt.ones(3)), RuntimeError, "l1_loss: .*2.*3"),
    (lambda: nn.init.trunc_normal_(pt.ones(2), a=3, b=1), RuntimeError, "trunc_normal_: a must not exceed b, got 3"),
    (lambda: SGD(3, lr=1.0), TypeError, "iterable of Tensors or dicts, but got int"),
    (lambda: lr_scheduler.StepLR(optimizer(), 0), ValueError, "StepLR: step_size must be a positive number, got 0"),
    (lambda: lr_scheduler.StepLR(optimizer(), "a"), ValueError, "StepLR: step_size must be a positive number, got 'a'"),
    (lambda: lr_scheduler.CosineAnnealingLR(optimizer(), 0), ValueError, "T_max must be a positive number, got 0"),
    (lambda: random_split(range(5), [6, -1]), ValueError, "random_split: .* got -1 at index 1"),
    (lambda: random_split(range(5), [2.5, 2.5]), ValueError, "random_split: .* got 2.5 at index 0"),
    (lambda: F.pad(pt.ones(1, 3), (1, 1), "reflect", 2.0), RuntimeError, "pad: mode 'reflect' takes no value, got 2.0"),
    (lambda: TensorDataset([1]), TypeError, "TensorDataset: tensors must be Tensors, got list")])
def test_wrong_arguments(call, error, text):
    with pytest.raises(error, match=text):
        call()


def test_sizes_of_other_integer_types():
    layer = nn.Linear(np.int64(2), pt.tensor(3))
    assert type(layer.in_features) is type(layer.out_features) is int
    assert layer(pt.ones(2)).shape == (3,)
    assert nn.LayerNorm(np.int32(2)).normalized_shape == (2,)
    assert nn.LayerNorm(pt.Size([2, 3])).normalized_shape == (2, 3)
    assert lr_scheduler.StepLR(optimizer(), 2.0).step_size == 2.0
    assert [len(part) for part in random_split(range(5), [5, 0])] == [5, 0]


@pytest.mark.parametrize("call", [
    lambda: F.softmax(pt.ones(3)), lambda: F.mse_loss(pt.ones(3), pt.ones(1)), lambda: nn.Softmax()(pt.ones(3)),
    lambda: nn.MSELoss()(pt.ones(3), pt.ones(1)), lambda: F.kl_div(pt.zeros(1, 2), pt.ones(1, 2)),
    lambda: pt.ones(3)[pt.ones(3, dtype=pt.uint8)]])
def test_warnings_point_to_the_users_line(call):
    with pytest.warns(UserWarning, match="implicit|broadcast|batchmean|mask") as caught:
        call()
    assert [(w.filename, w.lineno) for w in caught][-1:] == [(__file__, call.__code__.co_firstlineno)]
