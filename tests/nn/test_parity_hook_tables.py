"""Tables of hooks as parts of a module's dict, and private methods of PyTorch's modules that subclasses override."""
import copy
import io
import pickle
from collections import OrderedDict

import pytest
from _two_libraries import attempt, filled, same, values

import ptcore as pt

torch = pytest.importorskip("torch")

pytestmark = pytest.mark.parity


def hooked(m, log, name="hook"):
    net = filled(m, m.nn.Linear(2, 1))
    net.register_forward_hook(lambda *args: log.append(name))
    return net


# -- tables of hooks ---------------------------------------------------------------------------------------

def cleared_and_replaced(m):
    log = []
    net = hooked(m, log)
    net.register_forward_pre_hook(lambda *args: log.append("before"))
    for change in (lambda: None, net._forward_hooks.clear, lambda: setattr(net, "_forward_pre_hooks", OrderedDict()),
                   lambda: vars(net).update(_forward_hooks=OrderedDict({7: lambda *args: log.append("seven")})),
                   lambda: vars(net)["_forward_hooks"].clear()):
        change()
        log.append(net(values(m, 1, 2)))
    return log, [(key, type(table).__name__) for key, table in sorted(vars(net).items()) if "hooks" in key[1:] and
                 key != "_hooks"]


def replica_with_its_own_table(m):
    """DataParallel's idiom: a copy of the dict shares tables until it has its own."""
    log = []
    net = hooked(m, log)
    replica = net.__new__(type(net))
    replica.__dict__ = net.__dict__.copy()
    replica(values(m, 1, 2))
    replica._forward_hooks = OrderedDict()
    replica(values(m, 1, 2))
    log.append("original")
    net(values(m, 1, 2))
    replica.register_forward_pre_hook(lambda *args: log.append("shared"))
    net(values(m, 1, 2))
    return log


def shallow_copy_with_its_own_table(m):
    log = []
    net = hooked(m, log)
    other = copy.copy(net)
    other._forward_hooks = OrderedDict()
    other(values(m, 1, 2))
    log.append("original")
    net(values(m, 1, 2))
    del vars(other)["_forward_hooks"]
    return log, attempt(lambda: other._forward_hooks)


def state_without_hooks(m):
    """A state from which a class takes its hooks."""
    class Net(m.nn.Linear):
        def __getstate__(self):
            return {**self.__dict__, "_forward_hooks": OrderedDict(), "_backward_hooks": OrderedDict()}
    log, net = [], filled(m, Net(2, 1))
    net.register_forward_hook(lambda *args: log.append("hook"))
    for other in (copy.copy(net), copy.deepcopy(net)):
        other(values(m, 1, 2))
        log.append((len(other._forward_hooks), len(net._forward_hooks)))
    net(values(m, 1, 2))
    return log


def doubles(module, args, output):
    return output * 2


def tables_in_pickles(m):
    net = filled(m, m.nn.Linear(2, 1))
    net.register_forward_hook(doubles)
    found = []
    for other in (pickle.loads(pickle.dumps(net)), copy.deepcopy(net)):
        other.register_forward_hook(doubles)
        found.append((other(values(m, 1, 2)), net(values(m, 1, 2)), len(vars(other)["_forward_hooks"])))
    file = io.BytesIO()
    m.save(net.state_dict(), file)
    return found


def handles_and_tables(m):
    net, log = filled(m, m.nn.Linear(2, 1)), []
    first = net.register_forward_hook(lambda *args: log.append(1))
    second = net.register_forward_hook(lambda *args: log.append(2))
    vars(net)["_forward_hooks"].move_to_end(second.id, last=False)
    net(values(m, 1, 2))
    del net._forward_hooks[first.id]
    first.remove()
    found = first.hooks_dict_ref() is net._forward_hooks, list(net._forward_hooks) == [second.id]
    net._forward_hooks = OrderedDict()
    second.remove()
    net._forward_pre_hooks["x"] = lambda module, args: (args[0] * 2,)
    return log, found, net(values(m, 1, 2)), net._is_full_backward_hook


def initialised_twice(m):
    log = []
    net = hooked(m, log)
    net.__init__(2, 1)
    net(values(m, 1, 2))
    return log, len(net._forward_hooks)


def states_with_hooks(m):
    """Hooks of states stand in the dict as well."""
    net, log = filled(m, m.nn.Linear(1, 1)), []
    net._register_state_dict_hook(lambda module, state, prefix, metadata: {k.upper(): v for k, v in state.items()})
    net.register_state_dict_pre_hook(lambda module, prefix, keep: log.append(prefix))
    net.register_load_state_dict_post_hook(lambda module, keys: log.append(sorted(keys.missing_keys)))
    seen = list(net.state_dict(prefix="a.")), attempt(net.load_state_dict, {}, False)
    vars(net)["_state_dict_hooks"].clear()
    net._load_state_dict_post_hooks.clear()
    return seen, list(net.state_dict()), attempt(net.load_state_dict, {}, False), log


# -- what a call does --------------------------------------------------------------------------------------

def calls_of_subclasses(m):
    """``_call_impl`` that a class, its child or a class beside it overrides, without hooks and with them."""
    class More(m.nn.Linear):
        def _call_impl(self, *args, **kwargs):
            return super()._call_impl(*args, **kwargs) + 1

    class Beside:
        def _call_impl(self, *args, **kwargs):
            return super()._call_impl(*args, **kwargs) * 2

    class Twice(Beside, m.nn.Linear):
        pass

    class Child(More):
        pass
    found = []
    for cls in (More, Twice, Child, m.nn.Linear):
        net = filled(m, cls(2, 1))
        x = values(m, 1, 2).requires_grad_()
        found += [net(x), m.nn.Sequential(net)(input=x), net._call_impl(x), attempt(net)]
        net.register_forward_hook(lambda module, args, output: output * 10)
        net.register_full_backward_hook(lambda module, grads, outs: (grads[0] * 3,))
        net(x).sum().backward()
        found += [net(x), x.grad]
    handle = m.nn.modules.module.register_module_forward_hook(lambda module, args, output: output - 1)
    try:
        found.append(filled(m, Child(2, 1))(values(m, 1, 2)))
    finally:
        handle.remove()
    return found


def subclasses_with_keywords(m):
    seen = {}

    class Named(m.nn.Module):
        def __init_subclass__(cls, name=None, **kwargs):
            super().__init_subclass__(**kwargs)
            seen[name] = cls.__name__

    class One(Named, name="one"):
        pass

    def wrong():
        class Two(m.nn.Module, name="two"):
            pass
    return seen, attempt(wrong), One()


def not_compiled(m):
    net = m.nn.Linear(1, 1)
    net._compiled_call_impl = None
    return net._compiled_call_impl, hasattr(net, "_compiled_call_impl")


# -- methods of layers ---------------------------------------------------------------------------------------

def sizes_of_transposed_convolutions(m):
    found = []
    for name, size in (("ConvTranspose1d", 1), ("ConvTranspose2d", 2), ("ConvTranspose3d", 3)):
        base, seen = getattr(m.nn, name), []

        class Noting(base):
            noted = seen

            def _output_padding(self, input, output_size, stride, padding, kernel_size, num_spatial_dims,
                                dilation=None):
                added = super()._output_padding(input, output_size, stride, padding, kernel_size, num_spatial_dims,
                                                dilation)
                self.noted.append((output_size, tuple(stride), tuple(padding), tuple(kernel_size), num_spatial_dims,
                                   tuple(dilation), tuple(added)))
                return [1] * len(added)
        layer = filled(m, Noting(1, 1, 3, stride=2, padding=1))
        x = values(m, 1, 1, *[3] * size)
        found += [layer(x), layer(x, output_size=[6] * size), layer(x, [1, 1] + [5] * size),
                  attempt(layer, x, [9] * size),
                  layer._output_padding(x, [6] * size, layer.stride, layer.padding, (3,) * size, size, (1,) * size),
                  seen]
    return found


def calls_of_recurrent_layers(m):
    """What a walk asks of a subclass, in order: plain and packed, with a state and without, batched or not."""
    rnn, found = m.nn.utils.rnn, []
    for name in ("RNN", "GRU", "LSTM"):
        base, seen = getattr(m.nn, name), []
        names = ["permute_hidden", "check_forward_args", "check_hidden_size", "check_input", "get_expected_hidden_size"]
        names += ["get_expected_cell_size"] * (name == "LSTM")

        def noting(method, base=base, seen=seen):
            def noted(self, *args, **kwargs):
                seen.append(method)
                return getattr(base, method)(self, *args, **kwargs)
            return noted
        layer = filled(m, type("Noting", (base,), {method: noting(method) for method in names})(2, 3))
        h = values(m, 1, 2, 3)
        packed = rnn.pack_padded_sequence(values(m, 4, 2, 2), [2, 4], enforce_sorted=False)
        for x, state in ((values(m, 4, 2, 2), h), (values(m, 4, 2), h[:, 0]), (packed, h)):
            for given in (None, (state, state) if name == "LSTM" else state):
                found.append((layer(x, given), list(seen)))
                seen.clear()
        wrong = values(m, 1, 3, 3)
        for x in (values(m, 4, 2, 2), packed):
            found.append(attempt(layer, x, (wrong, wrong) if name == "LSTM" else wrong))
    return found


def states_in_another_order(m):
    class Back(m.nn.GRU):
        def permute_hidden(self, hx, permutation):
            hx = super().permute_hidden(hx, permutation)
            return hx * 2
    layer = filled(m, Back(2, 3))
    packed = m.nn.utils.rnn.pack_padded_sequence(values(m, 4, 2, 2), [2, 4], enforce_sorted=False)
    return layer(values(m, 4, 2, 2), values(m, 1, 2, 3)), layer(packed, values(m, 1, 2, 3))


def weights_of_recurrent_layers(m):
    """``_flat_weights`` is what a call takes; clones of modules set it."""
    found = []
    for name in ("LSTM", "GRU", "RNN"):
        layer = filled(m, getattr(m.nn, name)(2, 3, num_layers=2))
        x = values(m, 4, 1, 2)
        clone = layer.__new__(type(layer))
        clone.__dict__ = layer.__dict__.copy()
        clone._parameters = {key: p.clone() for key, p in layer._parameters.items()}
        clone._flat_weights = [clone._parameters[key] for key in clone._flat_weights_names]
        clone(x)[0].sum().backward()
        found += [layer.weight_hh_l0.grad, clone._flat_weights[0] is clone.weight_ih_l0]
        layer._flat_weights = [w * 0.5 for w in layer._flat_weights]
        found += [layer(x)[0], layer._flat_weights[1]]
        layer.double()
        found += [layer(x.double())[0], layer._flat_weights[1] is layer.weight_hh_l0]
        layer._flat_weights = [w.detach() * 2 for w in layer._flat_weights]
        found.append(layer(x.double())[0])
        layer.weight_hh_l0 = m.nn.Parameter(layer.weight_hh_l0.detach() * 3)
        found += [layer(x.double())[0], layer._flat_weights[0] is layer.weight_ih_l0]
    return found


# -- containers -------------------------------------------------------------------------------------------------

def names_of_dictionaries(m):
    """``keys`` that a class overrides: PyTorch's own methods read the table."""
    class Prefixed(m.nn.ModuleDict):
        def keys(self):
            return [f"p_{key}" for key in self._modules]

        def items(self):
            return [(f"p_{key}", module) for key, module in self._modules.items()]

    class Parameters(m.nn.ParameterDict):
        def keys(self):
            return [f"p_{key}" for key in super().keys()]
    one, two = Prefixed({"b": m.nn.ReLU(), "a": m.nn.Tanh()}), Parameters({"b": m.ones(1), "a": m.ones(1)})
    return [(list(x), len(x), "a" in x, "p_a" in x, list(x.keys()), list(x.state_dict()),
             type(x.pop("a")).__name__, list(x)) for x in (one, two)], attempt(one.pop, "p_a")


# -- buffers and conversions ------------------------------------------------------------------------------------

def buffers_of_overrides(m):
    """``register_buffer`` that a class overrides, with other defaults or without ``persistent``."""
    class Hidden(m.nn.Module):
        def register_buffer(self, name, tensor, persistent=False):
            super().register_buffer(name, tensor, persistent)

    class Plain(m.nn.Module):
        def register_buffer(self, name, tensor):
            super().register_buffer(name, tensor)

    class Any(m.nn.Module):
        def register_buffer(self, *args, **kwargs):
            super().register_buffer(*args, **kwargs)
    found = []
    for cls in (Hidden, Plain, Any, m.nn.Module):
        net = cls()
        net.register_buffer("a", m.ones(1))
        net.a = m.zeros(1)
        net.b = m.nn.Buffer(m.ones(1))
        found += [attempt(setattr, net, "c", m.nn.Buffer(m.ones(1), persistent=False)), list(net.state_dict()),
                  attempt(setattr, net, "b", None), [name for name, _ in net.named_buffers()]]
    return found


def conversions_with_copy(m):
    net, found = m.nn.Linear(1, 1), []
    for args, kwargs in ((("cpu",), {"copy": True}), ((), {"copy": False}), ((m.float64, False, True), {}),
                         ((m.ones(1), False, True), {}), ((m.float64, False), {}), ((), {"non_blocking": True})):
        found.append((attempt(lambda args=args, kwargs=kwargs: net.to(*args, **kwargs) is net), net.weight.dtype))
    return found


PROGRAMS = [cleared_and_replaced, replica_with_its_own_table, shallow_copy_with_its_own_table, state_without_hooks,
            tables_in_pickles, handles_and_tables, initialised_twice, states_with_hooks, calls_of_subclasses,
            subclasses_with_keywords, not_compiled, sizes_of_transposed_convolutions, calls_of_recurrent_layers,
            states_in_another_order, weights_of_recurrent_layers, names_of_dictionaries, buffers_of_overrides,
            conversions_with_copy]


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda f: f.__name__)
def test_programs(program):
    same(program, pt, torch)


def test_a_compiled_call_is_undone():
    net = filled(pt, pt.nn.Linear(2, 1))
    expected = net(values(pt, 1, 2))
    net.compile()
    assert net._compiled_call_impl is vars(net)["forward"]
    net._compiled_call_impl = None
    assert "forward" not in vars(net)
    assert net(values(pt, 1, 2)).equal(expected)
    with pytest.raises(AttributeError, match="None alone"):
        net._compiled_call_impl = len


def test_compiled_calls_of_subclasses():
    class More(pt.nn.Linear):
        def _call_impl(self, *args, **kwargs):
            return super()._call_impl(*args, **kwargs) + 1
    net = filled(pt, pt.nn.Sequential(More(2, 2), pt.nn.Tanh()))
    x = values(pt, 3, 2)
    expected = net(x)
    assert pt.allclose(pt.compile(net)(x), expected)
    net[0].register_forward_hook(lambda module, args, output: output * 2)
    expected = net(x)
    assert pt.allclose(pt.compile(net)(x), expected)
    net[0]._forward_hooks.clear()
    assert pt.allclose(pt.compile(net)(x), (net[0](x)).tanh())
