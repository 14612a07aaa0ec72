"""Random programs as graphs: traced with one vector and run on another one they give what the program gives, under
transformations as well; and without writes, by ``functionalize``. (Bits may differ where a derivative goes by whether a
value is 0, which no graph can ask.)"""
import random
import sys
from pathlib import Path

import numpy as np
import pytest

import ptcore as pt
from ptcore import fx
from ptcore.func import functionalize
from ptcore.fx.experimental.proxy_tensor import make_fx

sys.path.insert(0, str(Path(__file__).parent.parent / "func"))
from test_programs import PAIRS, PARTS, PROGRAMS, SEED, N, program


def vector(source):
    return pt.tensor([source.uniform(-1, 1) for _ in range(N)], dtype=pt.float64)


def same(got, want, rtol=1e-9, atol=1e-12):
    assert (got.shape, got.dtype, got.requires_grad) == (want.shape, want.dtype, want.requires_grad)
    np.testing.assert_allclose(got.numpy(), want.numpy(), rtol=rtol, atol=atol)


def check(seed):
    source = random.Random(-7 - seed)
    f = program(seed)
    for _ in range(source.choice([0, 0, 1, 2])):
        f = PAIRS[source.choice(list(PAIRS))][0](f)
    x, y = vector(source), vector(source)
    real, fake = [make_fx(f, tracing_mode=mode)(x.clone()) for mode in ("real", "fake")]
    assert fx.verify(real.graph) == fx.verify(fake.graph) == "rows"
    assert [n.target for n in real.graph.nodes] == [n.target for n in fake.graph.nodes]
    for v in (x, y):
        same(real(v), f(v))
        same(fake(v), real(v), 0, 0)


def check_without_writes(seed):
    source = random.Random(-9 - seed)
    f = program(seed)
    remove = source.choice(["mutations", "mutations_and_views"])
    if source.random() < 0.3:
        f = PAIRS[source.choice(list(PAIRS))][0](f)
    x, y = vector(source), vector(source)
    same(functionalize(f, remove=remove)(x), f(x))
    traced = make_fx(functionalize(f, remove=remove))(x)
    for node in traced.graph.nodes:
        assert node.op != "call_function" or not node.target.__name__.endswith("_")
        assert "out" not in node.kwargs
    same(traced(y), f(y))


@pytest.mark.parametrize("part", range(PARTS))
@pytest.mark.parametrize("checked", [check, check_without_writes], ids=["traced", "functionalized"])
def test_programs(checked, part):
    for seed in range(SEED + part, SEED + PROGRAMS // 4, PARTS):
        try:
            checked(seed)
        except Exception as e:
            raise AssertionError(f"program {seed}: {type(e).__name__}: {e}") from e
