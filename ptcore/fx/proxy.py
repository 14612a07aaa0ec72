"""``Proxy``: stands for a value that is not known yet; operations on it become nodes of a tracer's graph."""
import enum
import operator
import sys

import ptcore
from ptcore._errors import here
from ptcore._node import user_place
from ptcore._overrides import flat
from ptcore._state import are_source_lines_kept
from ptcore._tensor import Tensor
from ptcore.fx.immutable_collections import immutable_dict, immutable_list
from ptcore.fx.node import Node, map_aggregate

__all__ = ["Attribute", "GraphAppendingTracer", "Proxy", "TraceError", "TracerBase"]

_PLAIN = (str, int, float, bool, complex, type(None), type(...), ptcore.dtype, ptcore.device, Tensor, ptcore.Size,
          enum.Enum, ptcore.memory_format, type(ptcore.strided))


class TraceError(ValueError):
    """Raised where a program needs a traced value before it is known."""


class TracerBase:
    """Records nodes for proxies.

    Attributes
    ----------
    graph : Graph
    record_stack_traces : bool
        Whether nodes get the user's line (``Node.stack_trace``).
    """

    graph = None
    record_stack_traces = True
    proxy_buffer_attributes = False

    def create_node(self, kind, target, args, kwargs, name=None, type_expr=None):
        """Adds a node to the graph."""
        node = self.graph.create_node(kind, target, args, kwargs, name, type_expr)
        if self.record_stack_traces and are_source_lines_kept() and kind != "placeholder":
            place = user_place()
            if place is not None:
                node.meta["where"] = place
        return node

    def proxy(self, node):
        return Proxy(node, self)

    def create_proxy(self, kind, target, args, kwargs, name=None, type_expr=None, proxy_factory_fn=None):
        """Adds a node whose arguments may hold proxies, and returns the proxy of its value."""
        args, kwargs = self.create_arg(args), self.create_arg(kwargs)
        node = self.create_node(kind, target, tuple(args), dict(kwargs), name, type_expr)
        return self.proxy(node) if proxy_factory_fn is None else proxy_factory_fn(node)

    def create_arg(self, a):
        """An argument in the form that a node keeps: proxies become nodes, and data of unknown classes is refused.

        Raises
        ------
        NotImplementedError
            If a node cannot hold the value.
        """
        if isinstance(a, Proxy):
            return a.node
        if isinstance(a, (tuple, ptcore.Size)) and not isinstance(a, Tensor):
            items = [self.create_arg(x) for x in a]
            return type(a)(*items) if hasattr(a, "_fields") else tuple(items)
        if isinstance(a, list):
            return immutable_list([self.create_arg(x) for x in a])
        if isinstance(a, dict):
            for key in a:
                if any(isinstance(x, Proxy) for x in flat((key,))):
                    raise RuntimeError(f"a traced value cannot be a key of a dictionary that a node holds, got {key}")
            return immutable_dict({key: self.create_arg(x) for key, x in a.items()})
        if isinstance(a, slice):
            return slice(self.create_arg(a.start), self.create_arg(a.stop), self.create_arg(a.step))
        if isinstance(a, range):
            return range(a.start, a.stop, a.step)
        if isinstance(a, _PLAIN) or isinstance(a, Node) or isinstance(a, type) or callable(a):
            return a
        raise NotImplementedError(f"a node cannot hold a value of type {type(a).__name__}: {a!r}")

    def to_bool(self, obj):
        """Handles ``bool`` of a proxy."""
        raise TraceError("a traced value is neither true nor false before the program runs: branch on an argument that "
                         "concrete_args gives, or write where()" + here())

    def iter(self, obj):
        """Handles iteration over a proxy, which is allowed where the bytecode shows the number of items."""
        import dis
        frame = sys._getframe(2)
        code = frame.f_code
        for instruction in dis.get_instructions(code):
            if instruction.offset == frame.f_lasti + 2 and instruction.opname == "UNPACK_SEQUENCE":
                return (obj[k] for k in range(instruction.argval))
            if instruction.offset == frame.f_lasti and instruction.opname == "UNPACK_SEQUENCE":
                return (obj[k] for k in range(instruction.argval))
        raise TraceError("a traced value cannot be iterated: how many items it has is not known before the program "
                         "runs. Unpack it into names, or index it" + here())

    def keys(self, obj):
        """Handles ``**`` of a proxy."""
        return Attribute(obj, "keys")()


class GraphAppendingTracer(TracerBase):
    """A tracer that adds nodes to an existing graph."""

    def __init__(self, graph):
        self.graph = graph


class Proxy:
    """A value of a traced program. Ops, operators, methods and attributes of it become nodes.

    Attributes
    ----------
    node : Node
        The node whose value it stands for.
    tracer : TracerBase
    """

    def __init__(self, node, tracer=None):
        self.node = node
        self.tracer = GraphAppendingTracer(node.graph) if tracer is None else tracer

    def __repr__(self):
        return f"Proxy({self.node.name})"

    def __getattr__(self, name):
        if name.startswith("__") and name.endswith("__"):
            raise AttributeError(f"Proxy has no attribute {name!r}")
        return Attribute(self, name)

    def __call__(self, *args, **kwargs):
        return self.tracer.create_proxy("call_method", "__call__", (self, *args), kwargs)

    def __iter__(self):
        return self.tracer.iter(self)

    def __abs__(self):
        return self.tracer.create_proxy("call_function", operator.abs, (self,), {})

    def __bool__(self):
        return self.tracer.to_bool(self)

    def __len__(self):
        raise RuntimeError("len() of a traced value is not known before the program runs; ptcore.fx.wrap('len') at the "
                           "top level of the module records the call" + here())

    def __setitem__(self, key, value):
        self.tracer.create_proxy("call_function", operator.setitem, (self, key, value), {})

    def __deepcopy__(self, memo):
        return Proxy(self.node, self.tracer)

    def keys(self):
        return self.tracer.keys(self)

    @classmethod
    def __torch_function__(cls, orig_method, types, args=(), kwargs=None):
        kwargs = {} if kwargs is None else kwargs
        tracers = {id(x.tracer): x.tracer for x in flat((*args, *kwargs.values())) if isinstance(x, Proxy)}
        if len(tracers) != 1:
            raise RuntimeError(f"{getattr(orig_method, '__name__', orig_method)}: its arguments belong to "
                               f"{len(tracers)} tracers")
        (tracer,) = tracers.values()
        if orig_method in (Tensor.__getitem__, Tensor.__setitem__):
            item = operator.getitem if orig_method is Tensor.__getitem__ else operator.setitem
            return tracer.create_proxy("call_function", item, args, kwargs)
        owner = ptcore.Tensor.__dict__.get(getattr(orig_method, "__name__", ""))
        qualname = getattr(orig_method, "__qualname__", "")
        if owner is orig_method and qualname.startswith("Tensor."):
            return tracer.create_proxy("call_method", orig_method.__name__, args, kwargs)
        return tracer.create_proxy("call_function", orig_method, args, kwargs)


class ParameterProxy(Proxy):
    """A parameter whose sizes are numbers."""

    def __init__(self, node, tracer, param):
        super().__init__(node, tracer)
        self.param = param

    @property
    def shape(self):
        return self.param.shape

    @property
    def ndim(self):
        return self.param.ndim

    def size(self, dim=None):
        return self.param.size(dim) if dim is not None else self.param.size()

    def dim(self):
        return self.param.ndim

    def numel(self):
        return self.param.numel()

    nelement = numel


class Attribute(Proxy):
    """An attribute of a traced value. A call of it is a method call; any other use is a node that looks it up."""

    def __init__(self, root, attr):
        self.root, self.attr, self.tracer = root, attr, root.tracer
        self._node = None

    @property
    def node(self):
        if self._node is None:
            self._node = self.tracer.create_proxy("call_function", getattr, (self.root, self.attr), {}).node
        return self._node

    def __call__(self, *args, **kwargs):
        return self.tracer.create_proxy("call_method", self.attr, (self.root, *args), kwargs)


def _operator(name):
    function = getattr(operator, name)

    def method(self, *args):
        return self.tracer.create_proxy("call_function", function, (self, *args), {})
    method.__name__ = f"__{name.strip('_')}__"
    return method


def _reflected(name):
    function = getattr(operator, name)

    def method(self, other):
        return self.tracer.create_proxy("call_function", function, (other, self), {})
    method.__name__ = f"__r{name.strip('_')}__"
    return method


for _name in ("add", "and_", "eq", "floordiv", "ge", "getitem", "gt", "invert", "le", "lshift", "lt", "matmul", "mod",
              "mul", "ne", "neg", "or_", "pos", "pow", "rshift", "sub", "truediv", "xor"):
    setattr(Proxy, f"__{_name.strip('_')}__", _operator(_name))
for _name in ("add", "and_", "floordiv", "lshift", "matmul", "mod", "mul", "or_", "pow", "rshift", "sub", "truediv",
              "xor"):
    setattr(Proxy, f"__r{_name.strip('_')}__", _reflected(_name))
Proxy.__hash__ = object.__hash__


def proxies_in(a):
    """The proxies in an argument."""
    found = []
    map_aggregate(a, lambda x: found.append(x) if isinstance(x, Proxy) else None)
    return found
