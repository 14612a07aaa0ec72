"""The training programs of the parity suite with their losses compiled: fifty steps give what eager steps give, bit for
bit. (They lie beside torch's, whose module they import.)"""
import sys
from pathlib import Path

import pytest

import ptcore as pt
from ptcore.examples import digits, gpt

pytest.importorskip("torch")
sys.path.insert(0, str(Path(__file__).parent.parent / "examples"))
import program_tools
import test_parity_programs_1 as first
import test_parity_programs_2 as second

pytestmark = pytest.mark.parity

PROGRAMS = [(first, "sequence_to_sequence"), (first, "graph_attention"), (first, "mixture_of_experts"),
            (second, "meta_learning"), (second, "flow")]


def flat(x):
    if isinstance(x, (list, tuple)):
        return [y for part in x for y in flat(part)]
    return [x]


def same(a, b):
    a, b = flat(a), flat(b)
    assert len(a) == len(b)
    for k, (x, y) in enumerate(zip(a, b, strict=True)):
        assert (x is None and y is None) or pt.equal(x, y), k


@pytest.mark.parametrize("module, name", PROGRAMS, ids=[name for _, name in PROGRAMS])
def test_programs(module, name, monkeypatch):
    compiled = []

    def trained(parameters, optimizer, loss, compile):
        made = pt.compile(loss) if compile else loss
        compiled.append(made)
        return program_tools.trained(parameters, optimizer, made, steps=50)
    found = []
    for compile in (False, True):
        monkeypatch.setattr(module, "trained", lambda *args, compile=compile: trained(*args, compile))
        pt.manual_seed(0)
        found.append(getattr(module, name)(pt))
    same(*found)
    variants = [v for vs in compiled[1]._compiled.forms.values() for v in vs]
    assert variants, name


@pytest.mark.parametrize("name", ["digits", "gpt"])
def test_examples(name):
    found = []
    for compile in (False, True):
        pt.manual_seed(0)
        g = pt.Generator().manual_seed(1)
        model = digits.make_model(4, 0.2) if name == "digits" else gpt.GPT(20, 8, 2, 2, 16, 0.1)
        optimizer = pt.optim.AdamW(model.parameters(), lr=0.01)

        def step(images, labels, model=model, optimizer=optimizer):
            optimizer.zero_grad()
            if name == "digits":
                loss = pt.nn.functional.cross_entropy(model(digits.shifted(images)), labels, label_smoothing=0.1)
            else:
                loss = gpt.loss_of(model, images, labels)
            loss.backward()
            optimizer.step()
            return loss.detach()
        step = pt.compile(step) if compile else step
        losses = []
        for _ in range(50):
            run = pt.randint(20, (4, 9), generator=g)
            losses.append(step(pt.rand(6, 1, 8, 8, generator=g), pt.randint(10, (6,), generator=g)) if name == "digits"
                          else step(run[:, :-1], run[:, 1:]))
        if compile:
            variants = [v for vs in step._compiled.forms.values() for v in vs]
            assert len(variants) == 1 and variants[0].asks is None, [getattr(v, "reason", v) for v in variants]
        found.append([losses, [p.detach() for p in model.state_dict().values()]])
    same(*found)
