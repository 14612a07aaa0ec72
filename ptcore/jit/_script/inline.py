"""Inlining of scripted modules: one graph for each method, with attributes that no method sets as constants.

A call of a submodule, method or scripted function is replaced by the body of the called graph. Branches on constants
are decided. Modules of ptcore.nn that run unscripted stay calls, of copies.
"""
import builtins
import copy
import math
import operator

from ptcore.fx import blocks
from ptcore.fx.graph import Graph
from ptcore.fx.node import Node, map_aggregate
from ptcore.jit._script import operations
from ptcore.jit._script.asynchronous import fork
from ptcore.jit._script.functions import ScriptFunction
from ptcore.jit._script.modules import RecursiveScriptModule, attribute_kind, attribute_type, empty_module

__all__ = ["frozen", "inlined_graph"]

_PLAIN = (int, float, bool, complex, str, type(None))
# Functions that may be called at compile time: those of these modules, except print.
_AHEAD = frozenset([f for m in (builtins, operator, math, operations) for f in vars(m).values() if callable(f)]) - {
    print, operations.unused, operations.raise_error, operations.fail_assertion}


class _Module:
    """A module as a value of a graph."""

    def __init__(self, module):
        self.module = module


class _Method:
    """A method of a module as a value of a graph."""

    def __init__(self, module, name):
        self.module, self.name = module, name


def inlined_graph(function):
    """The graph of a scripted function or method, with its calls inlined.

    Attributes have their paths from its module.
    """
    owner = getattr(function._owner, "_jit_scripted", function._owner)
    return _Inliner(owner).graph_of(function, owner)


def frozen(module, kept):
    """A new ScriptModule with the methods ``forward`` and those of ``kept``, inlined.

    Tensors are copies, in buffers outside of the state dict. Attributes named in ``kept`` are the module's own objects.
    """
    made = empty_module(module.original_name)
    made.__dict__["training"] = module.training
    freezer = _Freezer(module, made, kept)
    for name in dict.fromkeys(["forward", *kept]):
        if attribute_kind(module, name) == "method" and name in module._jit_methods:
            freezer.add_method(name, module, name)
    return made


class _Inliner:
    """Copies graphs, and replaces calls by the called graphs."""

    def __init__(self, root):
        modules = () if root is None else root.named_modules()
        self.paths = {id(m): path for path, m in modules}

    # -- nodes -----------------------------------------------------------------------------------------------

    def graph_of(self, function, owner):
        """The graph of a function, or of a method of a module."""
        graph, args = Graph(), []
        for node in function.graph.find_nodes(op="placeholder"):
            made = graph.create_node("placeholder", node.target, node.args, type_expr=node.type)
            made.meta.update(node.meta)
            args.append(made)
        result = self.copy(function.graph, graph, args, owner)
        output = graph.output(self.given(graph, result), function.graph.output_node().type)
        output.meta.update(function.graph.output_node().meta)
        graph.eliminate_dead_code(lambda node: node.op != "get_attr")          # nodes that may raise stay
        return graph

    def copy(self, source, graph, args, owner):
        """Copies the nodes of a graph to the end of another one; returns the result."""
        env, args = {}, iter(args)
        for node in source.nodes:
            if node.op == "placeholder":
                env[node] = next(args)
            elif node.op == "output":
                return _mapped(node.args[0], env)
            else:
                env[node] = self.node(node, graph, env, owner)
        raise AssertionError("a graph without output")

    def node(self, node, graph, env, owner):
        if node.op == "get_attr":
            return self.attribute(graph, owner, node)
        args, kwargs = _mapped(node.args, env), {k: _mapped(a, env) for k, a in node.kwargs.items()}
        if node.op == "call_module":
            return self.call_module(node, graph, args, kwargs, owner)
        first = args[0] if args else None
        if node.op == "call_method" and isinstance(first, _Module):
            name = "forward" if node.target == "__call__" else node.target
            return self.call_method(node, graph, first.module, name, args, kwargs, owner)
        if node.op == "call_function" and isinstance(node.target, ScriptFunction) and node.target._owner is None:
            return self.inlined(graph, node.target, args, kwargs, owner)
        return self.other(node, graph, args, kwargs, owner)

    def call_module(self, node, graph, args, kwargs, owner):
        return self.call(graph, _at(owner, node.target), "forward", args, kwargs)

    def call_method(self, node, graph, module, name, args, kwargs, owner):
        if name not in module._jit_methods:             # Python runs this method
            return self.create(node, graph, args, kwargs, owner)
        return self.call(graph, module, name, args[1:], kwargs)

    def other(self, node, graph, args, kwargs, owner):
        return self.create(node, graph, args, kwargs, owner)

    def create(self, node, graph, args, kwargs, owner, target=None):
        made = graph.create_node(node.op, target or node.target, self.given(graph, args),
                                 {k: self.given(graph, a) for k, a in kwargs.items()}, node.name.rstrip("_0123456789"),
                                 node.type)
        made.meta.update(node.meta)
        made.blocks = tuple([self.block(b, owner) for b in node.blocks])
        return made

    def call(self, graph, module, name, args, kwargs):
        return self.inlined(graph, module._jit_methods[name], args, kwargs, module)

    def inlined(self, graph, function, args, kwargs, owner):
        if kwargs or len(args) != len(function.parameters):
            args = function._complete(args, kwargs)
        return self.copy(function.graph, graph, args, owner)

    def block(self, source, owner):
        graph = Graph()
        args = [graph.create_node("placeholder", node.target, (), type_expr=node.type)
                for node in source.find_nodes(op="placeholder")]
        graph.output(self.given(graph, self.copy(source, graph, args, owner)), source.output_node().type)
        return graph

    # -- attributes ------------------------------------------------------------------------------------------

    def attribute(self, graph, owner, node):
        *parts, last = node.target.split(".")
        holder = _at(owner, ".".join(parts))
        if not last:
            return _Module(owner)
        if last in holder._modules:
            return _Module(holder._modules[last])
        if last in holder._jit_methods:
            return self.call(graph, holder, last, (), {})           # a property
        return self.value(graph, holder, last, node)

    def value(self, graph, holder, name, node):
        path = self.paths[id(holder)]
        return self.get(graph, f"{path}.{name}" if path else name, node)

    @staticmethod
    def get(graph, name, node):
        made = graph.get_attr(name, node.type)
        made.meta.update(node.meta)
        return made

    def given(self, graph, a):
        """An argument of a node that is copied: a module is read by its name."""
        return map_aggregate(a, lambda x: self.read(graph, self.name_of(x.module)) if isinstance(x, _Module) else x)

    def name_of(self, module):
        return self.paths[id(module)]

    @staticmethod
    def read(graph, name):
        return graph.create_node("get_attr", name, name=name.replace(".", "_") or "self")


class _Freezer(_Inliner):
    """Inlines the methods of a module into a new module that holds the attributes they need."""

    def __init__(self, root, made, kept):
        super().__init__(root)
        self.made = made
        self.reserved = {"forward", *kept}
        # name in the new module, by the id of a tensor or module, or by the id of a module and an attribute
        self.names = {}
        self.written = set()            # (id of a module, attribute) that methods set
        self.whole = {}                 # id of a module that is kept -> its path in the new module
        self.copies = {}                # the memo of deepcopy
        for m in root.modules():
            if isinstance(m, RecursiveScriptModule):
                if "_hooks" in vars(m) and (m._forward_hooks or m._forward_pre_hooks or m._backward_hooks
                                            or m._backward_pre_hooks):
                    raise RuntimeError(f"freeze: {self.called(m)} has hooks, which are no part of a graph; remove them "
                                       "before the module is frozen")
                for method in m._jit_methods.values():
                    self.note_writes(m, method.graph)
        for name in kept:
            self.keep(root, name)

    def called(self, module):
        path = self.paths.get(id(module))
        return f"the module {path!r}" if path else "the module"

    def note_writes(self, module, graph):
        for node in graph.nodes:
            if node.op == "call_function" and node.target is operations.set_attribute and isinstance(
                    node.args[0], Node) and node.args[0].op == "get_attr":
                self.written.add((id(_at(module, node.args[0].target)), node.args[1]))
            for block in node.blocks:
                self.note_writes(module, block)

    def keep(self, root, name):
        """Gives the new module an attribute of the original as it is."""
        kind, made = attribute_kind(root, name), self.made
        if kind == "module":
            made._modules[name] = root._modules[name]
            for path, m in root._modules[name].named_modules():
                self.whole[id(m)] = f"{name}.{path}" if path else name
        elif kind == "tensor":
            table = "_parameters" if name in root._parameters else "_buffers"
            x = getattr(made, table)[name] = getattr(root, table)[name]
            self.names[self.key(root, name, x)] = name
            if name in root._non_persistent_buffers_set:
                made._non_persistent_buffers_set.add(name)
        elif kind == "attribute" and name != "training":
            self.add_attribute(root, name, name)

    def add_attribute(self, holder, name, under):
        value = getattr(holder, name)
        self.made._jit_types[under] = attribute_type(holder, name, value)
        self.made.__dict__[under] = copy.deepcopy(value, self.copies)
        self.names[id(holder), name] = under

    def add_method(self, under, owner, name):
        """Adds a method to the new module."""
        method = owner._jit_methods[name]
        made = ScriptFunction(under, self.graph_of(method, owner), method.parameters, method.returns, None, self.made)
        self.made._jit_methods[under] = made
        self.made._jit_show(under, made)

    # -- nodes -----------------------------------------------------------------------------------------------

    def call_module(self, node, graph, args, kwargs, owner):
        whole = self.whole.get(id(_at(owner, node.target)))
        if whole is None:
            return super().call_module(node, graph, args, kwargs, owner)
        return self.create(node, graph, args, kwargs, owner, whole)

    def call_method(self, node, graph, module, name, args, kwargs, owner):
        if id(module) in self.whole:
            return self.create(node, graph, args, kwargs, owner)
        if name not in module._jit_methods:
            raise RuntimeError(f"freeze: {name} of {self.called(module)} is run by Python as it is (@ignore) and may "
                               "change what would be a constant")
        return self.call(graph, module, name, args[1:], kwargs)

    def other(self, node, graph, args, kwargs, owner):
        first = args[0] if args else None
        if node.target is blocks.cond and type(first) is bool:
            return self.copy(node.blocks[0 if first else 1], graph, args[1:], owner)
        if node.target is operator.getitem and type(first) is tuple and type(args[1]) is int:
            return first[args[1]]
        if isinstance(first, _Module) and id(first.module) not in self.whole:
            if node.target is operations.set_attribute:
                return self.set_attribute(graph, node, first.module, args)
            if node.target is getattr:
                return _Method(first.module, args[1])
            if node.target is fork:
                first = _Method(first.module, "forward")
        if node.target is fork and isinstance(first, _Method):
            args = (self.as_method(graph, first), *args[1:])
        found = self.folded(node, args, kwargs)
        return self.create(node, graph, args, kwargs, owner) if found is None else found[0]

    @staticmethod
    def folded(node, args, kwargs):
        """The value of a call of constants, in a tuple, or None."""
        if node.op != "call_function" or node.target not in _AHEAD or node.meta.get("effect") or not all(
                [isinstance(a, _PLAIN) for a in (*args, *kwargs.values())]):
            return None
        try:
            value = node.target(*args, **kwargs)
        except Exception:               # the program raises it when it runs
            return None
        return (value,) if isinstance(value, _PLAIN) else None

    # -- attributes ------------------------------------------------------------------------------------------

    def value(self, graph, holder, name, node):
        if id(holder) in self.whole:
            return self.get(graph, f"{self.whole[id(holder)]}.{name}", node)
        value, is_written = getattr(holder, name), (id(holder), name) in self.written
        if name in holder._parameters or name in holder._buffers:
            is_absent = value is None and not is_written
            return None if is_absent else self.get(graph, self.name_of_tensor(holder, name), node)
        if (id(holder), name) not in self.names:
            if _is_constant(value) and not is_written:
                return value
            self.add_attribute(holder, name, self.name_for(holder, name))
        return self.get(graph, self.names[id(holder), name], node)

    def key(self, holder, name, x):
        """The key of a tensor's name. A tensor that several modules share and no method sets has one key."""
        return (id(holder), name) if x is None or (id(holder), name) in self.written else id(x)

    def name_of_tensor(self, holder, name):
        x = getattr(holder, name)
        key = self.key(holder, name, x)
        if key not in self.names:
            under = self.names[key] = self.name_for(holder, name)
            # One memo for all attributes keeps shared memory shared.
            self.made._buffers[under] = x if x is None else copy.deepcopy(x.detach(), self.copies)
            self.made._non_persistent_buffers_set.add(under)
        return self.names[key]

    def set_attribute(self, graph, node, holder, args):
        name = args[1]
        if name in holder._buffers:
            under = self.name_of_tensor(holder, name)
        else:
            if (id(holder), name) not in self.names:
                self.add_attribute(holder, name, self.name_for(holder, name))
            under = self.names[id(holder), name]
        made = graph.call_function(node.target, (self.read(graph, ""), under, self.given(graph, args[2])))
        made.meta.update(node.meta)
        return made

    def name_for(self, holder, name):
        """A free name in the new module for an attribute, made of its path."""
        path = self.paths.get(id(holder), "")
        base = "_".join([part for part in (*path.split("."), name) if part])
        base = under = base if base.isidentifier() else f"_{base}"
        k = 0
        while hasattr(self.made, under) or under in self.reserved:
            k += 1
            under = f"{base}_{k}"
        return under

    def as_method(self, graph, method):
        """A graph as a method of the new module."""
        key = (id(method.module), method.name, "()")
        if key not in self.names:
            self.names[key] = under = self.name_for(method.module, method.name)
            self.reserved.add(under)
            self.add_method(under, method.module, method.name)
        return graph.call_function(getattr, (self.read(graph, ""), self.names[key]))

    def name_of(self, module):
        name = self.whole.get(id(module)) or self.names.get(id(module))
        if name is None:
            name = self.names[id(module)] = self.name_for(module, "" if self.paths[id(module)] else "whole")
            self.made._modules[name] = _without_state(copy.deepcopy(module, self.copies))
            self.made.__dict__.setdefault("_jit_fixed", set()).add(name)
        return name


def _is_constant(x):
    """Whether a value may be an argument of a node as it is."""
    return isinstance(x, _PLAIN) or (type(x) is tuple and all([_is_constant(item) for item in x]))


def _mapped(a, env):
    return map_aggregate(a, lambda x: env[x] if isinstance(x, Node) else x)


def _at(module, path):
    for part in path.split(".") if path else ():
        module = module._modules[part]
    return module


def _without_state(module):
    """A module that runs unscripted, with its tensors outside of the state dict."""
    for m in module.modules():
        for name, p in list(m._parameters.items()):
            del m._parameters[name]
            m._buffers[name] = None if p is None else p.detach()
        m._non_persistent_buffers_set.update(m._buffers)
    return module
