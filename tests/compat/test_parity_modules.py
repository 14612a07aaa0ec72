"""The modules that import under the hook, beside those of an installed PyTorch."""
import importlib
import importlib.util
import inspect
import json
import subprocess
import sys
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")
ROOT = Path(torch.__file__).parent
TOOL = Path(__file__).resolve().parents[2] / "tools" / "absent_names.py"
# Private parts whose modules programs import.
PRIVATE = ("_dynamo", "_inductor", "_export", "_functorch", "_higher_order_ops", "_subclasses", "_library", "_refs",
           "_prims", "_decomp", "_logging", "_lazy", "_prims_common", "_custom_op", "_dispatch")


def modules():
    """Path below torch of every file of PyTorch that is public, or in a private part but public there."""
    for file in sorted(ROOT.rglob("*.py")):
        parts = file.relative_to(ROOT).with_suffix("").parts
        parts = parts[:-1] if parts[-1] == "__init__" else parts
        own = parts[1:] if parts and parts[0] in PRIVATE else parts
        if parts and all(p.isidentifier() for p in parts) and not any(p.startswith("_") for p in own):
            yield ".".join(parts)


def run(text, *arguments, hook=True):
    """What a text prints, under the hook or on PyTorch, as JSON."""
    before = ["-m", "ptcore.compat.torch"] if hook else []
    out = subprocess.run([sys.executable, "-P", *before, "-c", text, *arguments], capture_output=True, text=True,
                         timeout=300)
    assert out.returncode == 0, out.stderr
    return json.loads(out.stdout)


def test_every_module_imports():
    wrong = run("""
import importlib, json, sys
import torch
wrong = []
for path in sys.argv[1].split():
    try:
        importlib.import_module(f"torch.{path}")
    except ImportError:
        wrong.append(path)
print(json.dumps(wrong))
""", " ".join(modules()))
    assert not wrong, wrong


def test_every_module_of_the_list_is_pytorchs():
    paths = run("import json\nfrom ptcore.compat.torch import _paths\nprint(json.dumps(list(_paths.ABSENT)))")
    assert len(paths) > 1500
    wrong = [p for p in paths if not ROOT.joinpath(*p.split(".")).is_dir()
             and not ROOT.joinpath(*p.split(".")).with_suffix(".py").exists()]
    # PyTorch hands out modules of distributed.tensor under these paths.
    assert wrong == ["distributed._tensor._shards_wrapper", "distributed._tensor._utils",
                     "distributed._tensor.device_mesh", "distributed._tensor.experimental"], wrong


def test_more_names_are_pytorchs():
    """No name is made up, and what is a class there is one here, but for decorators and a context."""
    found = run("""
import inspect, json
from ptcore.compat.torch import _more
import importlib, torch
found = {}
for path, sources in _more.MORE.items():
    module = importlib.import_module(f"torch.{path}")
    names = [word.partition("=")[0] for words in sources.values() for word in words.split()]
    found[path] = {name: inspect.isclass(getattr(module, name)) for name in names}
print(json.dumps(found))
""")
    for path, names in found.items():
        module = importlib.import_module(f"torch.{path}")
        for name, is_class in names.items():
            theirs = getattr(module, name)
            if name not in ("non_deterministic", "functional_datapipe", "_enable_get_lr_call"):
                assert is_class or not inspect.isclass(theirs), (path, name)


HELPERS = """
import json, math, torch
from torch.nn import functional as F
from torch.nn.modules.transformer import (_detect_is_causal_mask, _generate_square_subsequent_mask, _get_activation_fn,
                                          _get_clones, _get_seq_len)
from torch.nn.modules.module import _addindent
from torch.nn.modules.rnn import apply_permutation
from torch.nn.init import _no_grad_fill_, _no_grad_zero_
def said(call):
    try:
        return call()
    except (ValueError, RuntimeError) as error:
        return type(error).__name__
x = torch.arange(6.0).reshape(2, 3)
w = torch.arange(27.0).reshape(9, 3) / 10
causal = _generate_square_subsequent_mask(3)
found = [
    _addindent("a\\nb\\nc", 3), _get_activation_fn("gelu")(x).tolist(), said(lambda: _get_activation_fn("elu")),
    len({id(m) for m in _get_clones(torch.nn.ReLU(), 3)}), [_get_seq_len(torch.ones(*s), b) for s in ((2, 3), (4, 5, 6))
                                                            for b in (False, True)],
    [_detect_is_causal_mask(m, h, n) for m in (None, causal, torch.zeros(3, 3)) for h in (None, True, False)
     for n in (None, 3)],
    apply_permutation(x, torch.tensor([2, 0, 1])).tolist(), [F._get_softmax_dim("f", n, 3) for n in range(5)],
    [said(lambda: F._verify_batch_size(s)) for s in ([1, 3], [2, 3], [1, 3, 2], [1, 3, 1, 1])],
    F._list_with_default([None, 4], [2, 5, 6]), said(lambda: F._list_with_default([1, 2], [3])),
    F._canonical_mask(torch.tensor([True, False]), "m", None, "", torch.float32).eq(-math.inf).tolist(),
    F._canonical_mask(x, "m", None, "", torch.float32).tolist(), F._canonical_mask(None, "m", None, "", None),
    [t.tolist() for t in F._in_projection_packed(x, x, x, w)], [t.tolist() for t in F._in_projection_packed(
        x, x + 1, x + 2, w, torch.arange(9.0))],
    [t.tolist() for t in F._in_projection(x, x, x, w[:3], w[3:6], w[6:], torch.ones(3))],
    _no_grad_fill_(torch.nn.Parameter(torch.ones(1)), 3.0).item(), _no_grad_zero_(torch.ones(1)).item(),
]
def near(a):
    return round(a, 3) if isinstance(a, float) else [near(b) for b in a] if isinstance(a, (list, tuple)) else a
print(json.dumps(near(found)))
"""


def test_helpers_do_what_pytorchs_do():
    assert run(HELPERS) == run(HELPERS, hook=False)


# Modules that import without optional packages, from every part.
SAMPLE = """
    ao.nn.intrinsic.modules.fused ao.nn.quantized.modules.conv ao.nn.quantized.dynamic.modules.rnn ao.ns.fx.utils
    ao.pruning.scheduler.lambda_scheduler ao.quantization.observer ao.quantization.qconfig ao.quantization.fx.convert
    ao.quantization.backend_config.backend_config ao.quantization.fuser_method_mappings ao.quantization.utils
    quantization.observer quantization.fx.prepare nn.quantized.modules.linear nn.intrinsic.qat.modules.conv_fused
    distributed.checkpoint.planner distributed.checkpoint.filesystem distributed.elastic.agent.server.api
    distributed.elastic.rendezvous.api distributed.elastic.timer.api distributed.fsdp.wrap distributed.optim.optimizer
    distributed.pipelining.microbatch distributed.tensor.parallel.style distributed.tensor.placement_types
    distributed.algorithms.model_averaging.utils distributed.rpc.options distributed.nn.functional
    export.graph_signature export.exported_program export.dynamic_shapes export.custom_obj
    fx.experimental.symbolic_shapes fx.experimental.unification.more fx.experimental.migrate_gradual_types.constraint
    fx.passes.splitter_base fx.passes.utils.matcher_utils fx.passes.infra.partitioner fx.passes.runtime_assert
    onnx.symbolic_opset9 onnx.symbolic_helper onnx.utils onnx.errors package.glob_group package.package_exporter
    sparse.semi_structured utils.data.datapipes.datapipe utils.data.datapipes.iter.combining utils.hipify.hipify_python
    utils.benchmark.utils.common utils.benchmark.utils.fuzzer utils.flop_counter utils.weak utils.module_tracker
    utils.collect_env profiler.python_tracer numa.binding xpu.graphs nn.attention.bias
"""


def test_names():
    """Classes and functions that PyTorch's modules define are there, and classes are classes."""
    text = """
import importlib, inspect, json, sys
found = {}
for path in sys.argv[1].split():
    module = importlib.import_module(f"torch.{path}")
    found[path] = {n: inspect.isclass(x) for n, x in vars(module).items() if not n.startswith("_") and n != "T"
                   and (inspect.isclass(x) or inspect.isfunction(x))
                   and (x.__module__, x.__name__) == (module.__name__, n)}
print(json.dumps(found))
"""
    wanted = run(text, SAMPLE, hook=False)
    assert sum(map(len, wanted.values())) > 450
    wrong = run("""
import importlib, inspect, json, sys
wrong = []
for path, names in json.loads(sys.argv[1]).items():
    module = importlib.import_module(f"torch.{path}")
    for name, is_class in names.items():
        if not hasattr(module, name) or (is_class and not inspect.isclass(getattr(module, name))):
            wrong.append(f"{path}.{name}")
print(json.dumps(wrong))
""", json.dumps(wanted))
    assert not wrong, wrong


@pytest.mark.slow
@pytest.mark.skipif(not torch.__version__.startswith("2.13."), reason="the list is that of PyTorch 2.13")
def test_the_list_is_up_to_date():
    spec = importlib.util.spec_from_file_location("absent_names", TOOL)
    tool = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(tool)
    assert tool.FILE.read_text() == tool.text()
