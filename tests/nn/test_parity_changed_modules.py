"""Modules after several changes: what a generator of long programs found, each as its smallest program."""
import copy
import gc
import importlib
import io

import pytest
from _two_libraries import attempt, filled, same, values

import ptcore as pt

torch = pytest.importorskip("torch")

pytestmark = pytest.mark.parity


def part(m, name):
    return importlib.import_module(f"{m.__name__}.{name}")


def parametrised_originals(m):
    """The original of a parametrisation is parametrised itself; names beside the numbers are no parametrisations."""
    parametrize = part(m, "nn.utils.parametrize")

    class Doubled(m.nn.Module):
        def forward(self, x):
            return x * 2

        def right_inverse(self, x):
            return x / 2
    net = filled(m, m.nn.Linear(2, 2))
    parametrize.register_parametrization(net, "weight", Doubled())
    parametrize.register_parametrization(net, "weight", m.nn.Tanh())
    inner = net.parametrizations.weight
    parametrize.register_parametrization(inner, "original", m.nn.Sigmoid())
    found = [net.weight, list(net.state_dict()), [name for name, _ in net.named_modules()], net(values(m, 1, 2))]
    parametrize.remove_parametrizations(inner, "original")
    return found, net.weight, list(net.state_dict())


def emptied_parametrisation(m):
    parametrize = part(m, "nn.utils.parametrize")
    net = parametrize.register_parametrization(filled(m, m.nn.Linear(2, 2)), "weight", m.nn.Tanh())
    del net.parametrizations.weight[0]
    return attempt(lambda: net.weight), attempt(net, values(m, 1, 2)), attempt(lambda: [*map(net, values(m, 3, 2))])


def stacked_copies_of_parametrised_models(m):
    normed = part(m, "nn.utils.parametrizations").weight_norm
    net = normed(filled(m, m.nn.Linear(2, 2)))
    params, buffers = m.func.stack_module_state([net, copy.deepcopy(net)])
    call = m.func.functional_call
    batched = m.func.vmap(lambda p, x: call(net, p, (x,)), in_dims=(0, None))(params, values(m, 3, 2))
    return (params, buffers, batched, attempt(m.func.stack_module_state, [net, m.nn.Linear(2, 2)]),
            attempt(m.func.stack_module_state, [net, normed(m.nn.Bilinear(2, 2, 2))]))


def attributes_of_parameter_dicts(m):
    table = m.nn.ParameterDict({"a": values(m, 2)})
    table.extra = m.nn.Parameter(values(m, 3))
    table.register_buffer("kept", values(m, 1))
    caught = []
    for error in (KeyError, AttributeError):
        if error is AttributeError or m is pt:          # PyTorch raises AttributeError, dictionaries KeyError
            try:
                table["absent"]
            except error:
                caught.append(error)
    table["kept"] = values(m, 1, shift=1)
    return (table["extra"], table["kept"], "extra" in table, list(table), table.get("extra"), AttributeError in caught,
            attempt(lambda: table.pop("extra")), len(table))


def hooks_of_modules_that_are_gone(m):
    """A shallow copy has the hooks of its original, which may die; nothing can be copied or called then."""
    net = m.nn.Linear(2, 2)
    net.register_load_state_dict_pre_hook(lambda *args: None)
    net = copy.copy(net)
    gc.collect()
    return attempt(copy.deepcopy, net), attempt(net.load_state_dict, net.state_dict())


def spectral_norm_of_vectors(m):
    m.manual_seed(0)
    net = filled(m, m.nn.Linear(3, 3))
    part(m, "nn.utils").spectral_norm(net, "bias")
    return sorted(net.state_dict()), [b.shape for b in net.buffers()], net.train()(values(m, 1, 3)), net.bias


def numbers_of_repeated_parameters(m):
    a, b, c, d = (m.nn.Parameter(values(m, 2, shift=i)) for i in range(4))
    optimizer = m.optim.SGD([{"params": [a, b, a]}], lr=0.1, momentum=0.9)
    optimizer.add_param_group({"params": [c, c]})
    optimizer.add_param_group({"params": [d]})
    for p in (a, b, c, d):
        p.grad = m.ones(2)
    optimizer.step()
    state = optimizer.state_dict()
    optimizer.load_state_dict(copy.deepcopy(state))
    return ([group["params"] for group in state["param_groups"]], sorted(state["state"]),
            sorted(optimizer.state_dict()["state"]), a, c)


def groups_without_parameters(m):
    optimizer = m.optim.SGD([m.nn.Parameter(values(m, 2))], lr=0.1)
    return attempt(optimizer.add_param_group, {"lr": 1}), attempt(optimizer.add_param_group, {"params": []})


PROGRAMS = (parametrised_originals, emptied_parametrisation, stacked_copies_of_parametrised_models,
            attributes_of_parameter_dicts, hooks_of_modules_that_are_gone, spectral_norm_of_vectors,
            numbers_of_repeated_parameters, groups_without_parameters)


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda f: f.__name__)
def test_programs(program):
    with pt.random.use("pytorch"):
        same(program, pt, torch)


# -- whole modules in files -----------------------------------------------------------------------------------

def pruned(m, *ways):
    prune = part(m, "nn.utils.prune")
    net = filled(m, m.nn.Linear(3, 3))
    for name, *args in ways:
        getattr(prune, name)(net, "weight", *args)
    return net


def averaged(m):
    average = part(m, "optim.swa_utils").AveragedModel(filled(m, m.nn.Linear(3, 3)))
    average.update_parameters(m.nn.Linear(3, 3))
    return average


WHOLE = {"one": lambda m: pruned(m, ("l1_unstructured", 2)), "rows": lambda m: pruned(m, ("ln_structured", 1, 2, 0)),
         "several": lambda m: pruned(m, ("random_unstructured", 2), ("random_structured", 1, 0), ("identity",)),
         "mask": lambda m: pruned(m, ("custom_from_mask", m.eye(3))), "average": averaged}


@pytest.mark.parametrize("reader", [pt, torch], ids=["ptcore", "torch"])
@pytest.mark.parametrize("writer", [pt, torch], ids=["ptcore", "torch"])
@pytest.mark.parametrize("name", WHOLE)
def test_pruned_and_averaged_modules_in_files(name, writer, reader):
    net, file = WHOLE[name](writer), io.BytesIO()
    writer.save(net, file)
    file.seek(0)
    read = reader.load(file, weights_only=False)
    x = [[0.5, -1.0, 2.0]]
    assert read(reader.tensor(x)).tolist()[0] == pytest.approx(net(writer.tensor(x)).tolist()[0])
    assert list(read.state_dict()) == list(net.state_dict())
    if "average" not in name:
        reader_prune = part(reader, "nn.utils.prune")
        assert reader_prune.is_pruned(read)
        reader_prune.l1_unstructured(read, "weight", 1)
        reader_prune.remove(read, "weight")
        assert [key for key, _ in read.named_parameters()] == ["bias", "weight"]
    else:
        read.update_parameters(reader.nn.Linear(3, 3))
        assert int(read.n_averaged) == 2
