"""The order of optimisers' hooks of every two and three kinds."""
import importlib
import itertools

import pytest

import ptcore as pt

torch = pytest.importorskip("torch")

pytestmark = pytest.mark.parity

OWN = {"pre": ("step_pre", {}), "post": ("step_post", {}), "state pre": ("state_dict_pre", {}),
       "state pre first": ("state_dict_pre", {"prepend": True}), "state post": ("state_dict_post", {}),
       "state post first": ("state_dict_post", {"prepend": True}), "load pre": ("load_state_dict_pre", {}),
       "load pre first": ("load_state_dict_pre", {"prepend": True}), "load post": ("load_state_dict_post", {})}
GLOBAL = {"pre of all": "step_pre", "post of all": "step_post"}


def events(m, kinds):
    seen, handles = [], []
    p = m.ones(1, requires_grad=True)
    p.grad = m.ones(1)
    optimizer = m.optim.SGD([p], lr=0.1)
    everywhere = importlib.import_module(f"{m.__name__}.optim.optimizer")
    for i, kind in enumerate(kinds):
        def note(*rest, tag=f"{kind} {i}"):
            seen.append((tag, p.item()))

        if kind in OWN:
            name, keywords = OWN[kind]
            getattr(optimizer, f"register_{name}_hook")(note, **keywords)
        else:
            handles.append(getattr(everywhere, f"register_optimizer_{GLOBAL[kind]}_hook")(note))
    try:
        optimizer.step()
        optimizer.load_state_dict(optimizer.state_dict())
    finally:
        for handle in handles:
            handle.remove()
    return seen


@pytest.mark.parametrize("first", [*OWN, *GLOBAL])
def test_order(first):
    for kinds in itertools.chain([(first,)], *[itertools.product((first,), *[(*OWN, *GLOBAL)] * n) for n in (1, 2)]):
        assert events(pt, kinds) == events(torch, kinds), kinds
