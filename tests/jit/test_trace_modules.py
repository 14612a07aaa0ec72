"""Each module of nn: traced, saved and loaded, with the results and gradients of eager calls."""
import io

import pytest
from _module_table import MODULES, as_made, given

import ptcore as pt
from ptcore import jit


def again(traced):
    file = io.BytesIO()
    jit.save(traced, file)
    return jit.load(io.BytesIO(file.getvalue()))


def leaves(x):
    return [x] if isinstance(x, pt.Tensor) else [leaf for y in x for leaf in leaves(y)]


@pytest.mark.parametrize("training", [False, True])
@pytest.mark.parametrize("name", sorted(MODULES))
@pytest.mark.filterwarnings("ignore")
def test_modules(name, training):
    module, args = as_made(name, training), given(name)
    traced = jit.trace(module, tuple(args), check_trace=False)
    found = []
    for m in (module, traced, again(traced)):
        m.load_state_dict(as_made_state(name, training))
        pt.manual_seed(5)
        xs = [x.clone().requires_grad_(x.is_floating_point()) for x in args]
        outs = leaves(m(*xs))
        graded = [y for y in outs if y.requires_grad]
        inputs = [x for x in [*xs, *m.parameters()] if x.requires_grad]
        grads = pt.autograd.grad([(y * y).sum() for y in graded], inputs, allow_unused=True) if graded else []
        found.append([*outs, *[g for g in grads if g is not None], *m.state_dict().values()])
    for other in found[1:]:
        assert len(other) == len(found[0])
        for a, b in zip(found[0], other, strict=True):
            assert a.dtype is b.dtype and bool(((a == b) | ((a != a) & (b != b))).all())


STATES = {}


def as_made_state(name, training):
    """One state of each module, for all of its forms."""
    if name not in STATES:
        pt.manual_seed(9)
        STATES[name] = {k: v.clone() for k, v in as_made(name, training).state_dict().items()}
    return STATES[name]
