"""The modules that import under the hook, beside those of an installed PyTorch."""
import importlib.util
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
