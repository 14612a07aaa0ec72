"""``symbolic_trace`` of every module of the class table beside torch's: the same nodes, or both raise."""
import numpy as np
import pytest
from _module_table import MODULES, as_made, given

import ptcore as pt
from ptcore import fx

torch = pytest.importorskip("torch")
pytest.importorskip("torch.fx")

pytestmark = [pytest.mark.parity, *[pytest.mark.filterwarnings(f"ignore::{kind}") for kind in (
    "UserWarning", "FutureWarning", "DeprecationWarning")]]

# What torch calls inside of a public function is its own affair: the public names of two such targets.
PUBLIC = {"_threshold": "threshold", "log_sigmoid": "logsigmoid"}


def nodes(graph):
    """Kind and target of each node: functions and methods by their names."""
    found = []
    for node in graph.nodes:
        name = node.target if isinstance(node.target, str) else node.target.__name__
        found.append((node.op, PUBLIC.get(name, name)))
    return found


def outcome(lib, module):
    try:
        return nodes(lib.fx.symbolic_trace(module).graph)
    except lib.fx.proxy.TraceError:
        return "TraceError"
    except (TypeError, RuntimeError):                   # a mask that is no tensor
        return "refused"


@pytest.mark.parametrize("training", [False, True])
@pytest.mark.parametrize("name", sorted(MODULES))
def test_nodes(name, training):
    settings, _ = MODULES[name]
    theirs = getattr(torch.nn, name)(*settings)
    if name.startswith("Lazy"):
        theirs(*[torch.asarray(np.asarray(x)) for x in given(name)])
    assert outcome(pt, as_made(name, training)) == outcome(torch, theirs.train(training))


def test_class_of_errors():
    assert issubclass(fx.TraceError, ValueError) and issubclass(torch.fx.proxy.TraceError, ValueError)
