"""The examples of the package under ``compile``: one graph each, and the weights that they train eagerly."""
import copy

import numpy as np
import pytest

import ptcore as pt
from ptcore import nn
from ptcore.examples import digits, gpt
from ptcore.jit import compiled as _compile


def trained(model, loss, batches, compiled):
    """Losses and weights of some steps."""
    pt.manual_seed(3)
    optimizer = pt.optim.AdamW(model.parameters(), lr=0.01)
    losses = []
    for batch in batches:
        optimizer.zero_grad()
        value = loss(compiled, *batch)
        value.backward()
        optimizer.step()
        losses.append(value.item())
    return losses, list(model.state_dict().values())


def compare(model, loss, batches, compile_loss=False, captures=1):
    twin = copy.deepcopy(model)
    before = dict(_compile.counts)
    if compile_loss:
        found = trained(model, pt.compile(loss, backend="eager"), batches, model)
    else:
        found = trained(model, loss, batches, pt.compile(model, backend="eager"))
    assert {k: n - before[k] for k, n in _compile.counts.items()} == {"captures": captures, "eager": 0, "raised": 0}
    losses, weights = trained(twin, loss, batches, twin)
    assert found[0] == losses
    for a, b in zip(found[1], weights):
        np.testing.assert_array_equal(a.numpy(), b.numpy())


@pytest.mark.parametrize("compile_loss", [False, True])
def test_gpt(compile_loss):
    pt.manual_seed(0)
    model = gpt.GPT(20, 8, 2, 2, 16, 0.1)
    runs = [pt.randint(20, (4, 9)) for _ in range(5)]
    compare(model, gpt.loss_of, [(r[:, :-1], r[:, 1:]) for r in runs], compile_loss)


def test_gpt_writes():
    pt.manual_seed(0)
    model = gpt.GPT(20, 8, 1, 2, 16, 0.1).eval()
    twin, start = copy.deepcopy(model), pt.randint(20, (2, 1))
    model.compile(backend="eager")
    before = dict(_compile.counts)
    pt.manual_seed(1)
    found = model.write(start, 12, 1.0)
    pt.manual_seed(1)
    assert found.tolist() == twin.write(start, 12, 1.0).tolist()
    # one of length 1, one of symbolic length, and one for each stride of the windows of a text that is longer
    assert _compile.counts["captures"] - before["captures"] == 6


def test_digits():
    pt.manual_seed(0)
    model = digits.make_model(4, 0.2)
    batches = [(pt.rand(6, 1, 8, 8), pt.randint(10, (6,))) for _ in range(5)]

    def loss(model, images, labels):
        return nn.functional.cross_entropy(model(digits.shifted(images)), labels, label_smoothing=0.1)
    compare(model, loss, batches)
    compare(model, loss, batches, compile_loss=True)


class LanguageModel(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding, self.rnn, self.head = nn.Embedding(20, 8), nn.LSTM(8, 16, 2, dropout=0.1), nn.Linear(16, 20)

    def forward(self, numbers, state=None):
        out, state = self.rnn(self.embedding(numbers), state)
        return self.head(out), state


def test_an_lstm_language_model():
    pt.manual_seed(0)

    def loss(model, numbers):
        logits, _ = model(numbers[:-1])
        return nn.functional.cross_entropy(logits.flatten(0, 1), numbers[1:].flatten())
    compare(LanguageModel(), loss, [(pt.randint(20, (7, 3)),) for _ in range(4)], compile_loss=True)
