"""Wrong arguments of modules, losses, schedules and data sets: the error names what was called."""
import math

import numpy as np
import pytest

import ptcore as pt
from ptcore import nn
from ptcore.nn import functional as F
from ptcore.nn import utils
from ptcore.optim import SGD, lr_scheduler
from ptcore.utils.data import TensorDataset, WeightedRandomSampler, default_collate, random_split

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
    *[(lambda offsets=offsets, mode=mode: nn.functional.embedding_bag(
        pt.tensor([1, 2, 3]), pt.ones(6, 1), pt.tensor(offsets), mode=mode), (RuntimeError, ValueError),
       "^embedding_bag: offsets") for offsets in ([0, 3, 1], [0, -1], [0, 2, -1, 3], [0, 4], [1, 2], [0, 5, 3])
      for mode in ("sum", "mean", "max")],
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
    (lambda: TensorDataset([1]), TypeError, "TensorDataset: tensors must be Tensors, got list"),
    (lambda: TensorDataset(pt.tensor(1)), IndexError, "TensorDataset: tensors must have at least one dimension, got"),
    (lambda: default_collate({}), TypeError, "collate: batch must be a list of samples, got dict"),
    (lambda: WeightedRandomSampler([None, 1.0], 1), TypeError, "weights must be numbers, got"),
    (lambda: nn.Embedding(2, 3, sparse="x"), TypeError, "Embedding: sparse must be bool, got str"),
    (lambda: nn.init.calculate_gain(["relu"]), ValueError, "calculate_gain: nonlinearity must be str, got list"),
    (lambda: nn.init.orthogonal_(pt.ones(2, 2), "x"), TypeError, "orthogonal_: gain must be float, got str"),
    (lambda: nn.init.trunc_normal_(pt.ones(2), std=-1), ValueError, "trunc_normal_: .* std must be positive, got"),
    (lambda: utils.parameters_to_vector(["x"]), TypeError, "parameters must be a Tensor, got str"),
    (lambda: utils.vector_to_parameters(pt.ones(2, device="meta"), [pt.ones(2)]), RuntimeError, "got meta"),
    (lambda: utils.spectral_norm(nn.Linear(2, 2), "x"), KeyError, "name must be that of a parameter .* got 'x'"),
    (lambda: utils.spectral_norm(nn.Linear(2, 2), 1), TypeError, "spectral_norm: name must be str, got int"),
    (lambda: utils.prune.identity(nn.Linear(2, 2), "x"), AttributeError, "that of a parameter of Linear, got 'x'"),
    (lambda: utils.prune.custom_from_mask(nn.Linear(2, 2), "weight", 1), TypeError, "mask must be a Tensor, got int"),
    (lambda: utils.parametrizations.orthogonal(nn.Linear(2, 2), "weight", 1), TypeError,
     "orthogonal: orthogonal_map must be str, got int"),
    (lambda: utils.rnn.pack_padded_sequence(pt.ones(3, 2), "x"), TypeError, "lengths must be .* got str"),
    (lambda: utils.rnn.pack_padded_sequence(pt.ones(3, 2), 2), RuntimeError, "lengths must be a vector of int64"),
    (lambda: utils.rnn.pack_padded_sequence(pt.ones(3, 2), [2.7, 1]), RuntimeError, r"whole numbers, got \[2.7"),
    (lambda: utils.rnn.pack_padded_sequence(pt.ones(3, 2), [math.inf, 1]), RuntimeError, "whole numbers, got"),
    (lambda: utils.rnn.pack_padded_sequence(pt.ones(3, 2), pt.ones(2)), RuntimeError, "vector of int64, or of"),
    (lambda: nn.GRU(2, 3)(pt.ones(4, 1, 2), (pt.ones(1, 1, 3),)), TypeError, "GRU: hx must be a Tensor, got tuple"),
    (lambda: nn.RNN(2, 3)(pt.ones(4, 1, 2), (pt.ones(1, 1, 3),)), TypeError, "RNN: hx must be a Tensor, got tuple"),
    (lambda: utils.rnn.pack_sequence(["x"]), TypeError, "pack_sequence: sequences must be a Tensor, got str"),
    (lambda: F.gelu(pt.ones(2), approximate=1), TypeError, "gelu: approximate must be one of .* got 1"),
    (lambda: F.gelu(pt.ones(2), approximate="x"), RuntimeError, "gelu: approximate must be one of .* got 'x'"),
    (lambda: F.cosine_similarity(pt.ones(2, 2), pt.ones(2, 2), eps=-1), RuntimeError, "eps must not be negative"),
    (lambda: F.pad(pt.ones(2), (1, 1), value=1j), TypeError, "pad: value must be real beside float32, got complex"),
    (lambda: F.binary_cross_entropy(pt.ones(2), pt.ones(2), pt.ones(2) * 1j), RuntimeError, "weight must be real"),
    (lambda: F.ctc_loss(pt.zeros(2, 1, 3), pt.ones(1, 1, dtype=pt.int64, device="meta"), [2], [1]), RuntimeError,
     "targets must be on the device of log_probs, cpu, got meta")])
def test_wrong_arguments(call, error, text):
    with pytest.raises(error, match=text):
        call()


@pytest.mark.parametrize("name", ["weight", "pos_weight"])
def test_weights_leave_the_dtype_of_a_loss(name):
    x, weight = pt.tensor([0.5, 0.25]), pt.tensor([2.0, 1.0], dtype=pt.float64)
    loss = F.binary_cross_entropy_with_logits(x, x, **{name: weight})
    assert loss.dtype is pt.float32
    assert loss.item() == F.binary_cross_entropy_with_logits(x, x, **{name: weight.float()}).item()
    assert F.binary_cross_entropy(x, x, weight).dtype is pt.float32


def test_lengths_of_any_integer_dtype():
    want = utils.rnn.pack_padded_sequence(pt.arange(6).reshape(3, 2), [2, 1])
    for lengths in ([2.0, True], pt.tensor([2, 1], dtype=pt.int32), pt.tensor([2, 1], dtype=pt.uint8)):
        found = utils.rnn.pack_padded_sequence(pt.arange(6).reshape(3, 2), lengths)
        assert found.data.tolist() == want.data.tolist() and found.batch_sizes.tolist() == want.batch_sizes.tolist()


def test_sequences_of_negative_length_are_empty():
    found = utils.rnn.unpad_sequence(pt.ones(3, 2), pt.tensor([-1, 2]))
    assert [x.shape[0] for x in found] == [0, 2]


def test_initialisers_on_meta():
    assert nn.init.sparse_(pt.ones(3, 2, device="meta"), 0.5).is_meta


def test_sizes_of_other_integer_types():
    layer = nn.Linear(np.int64(2), pt.tensor(3))
    assert type(layer.in_features) is type(layer.out_features) is int
    assert layer(pt.ones(2)).shape == (3,)
    assert nn.LayerNorm(np.int32(2)).normalized_shape == (2,)
    assert nn.LayerNorm(pt.Size([2, 3])).normalized_shape == (2, 3)
    assert lr_scheduler.StepLR(optimizer(), 2.0).step_size == 2.0
    assert lr_scheduler.StepLR(optimizer(), np.int64(2)).step_size == 2
    assert lr_scheduler.CosineAnnealingLR(optimizer(), np.int64(2)).T_max == 2
    assert [len(part) for part in random_split(range(5), [5, 0])] == [5, 0]


@pytest.mark.parametrize("call", [
    lambda: F.softmax(pt.ones(3)), lambda: F.mse_loss(pt.ones(3), pt.ones(1)), lambda: nn.Softmax()(pt.ones(3)),
    lambda: nn.MSELoss()(pt.ones(3), pt.ones(1)), lambda: F.kl_div(pt.zeros(1, 2), pt.ones(1, 2)),
    lambda: pt.ones(3)[pt.ones(3, dtype=pt.uint8)]])
def test_warnings_point_to_the_users_line(call):
    with pytest.warns(UserWarning, match="implicit|broadcast|batchmean|mask") as caught:
        call()
    assert [(w.filename, w.lineno) for w in caught][-1:] == [(__file__, call.__code__.co_firstlineno)]
