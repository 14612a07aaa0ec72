"""Running a graph of script: nodes become a list of calls on numbered places, once; a call walks the list."""
import operator

from ptcore.fx import _blocks
from ptcore.fx.node import Node, map_aggregate

__all__ = ["Program"]


class Program:
    """A graph ready to run.

    Parameters
    ----------
    graph : Graph
    owner : Module, optional
        What ``get_attr`` and ``call_module`` look names up in.
    """

    def __init__(self, graph, owner=None):
        self.graph, self.owner = graph, owner
        places, template, steps, nodes = {}, [], [], []
        constants = {}

        def place():
            template.append(None)
            return len(template) - 1

        def take(a):
            """Where a value is; constants get places of their own."""
            if isinstance(a, Node):
                return places[a]
            key = (type(a), id(a))
            if key not in constants:
                constants[key] = place()
                template[constants[key]] = a
            return constants[key]

        last = {}
        for node in reversed(graph.nodes):
            for used in node._input_nodes:
                last.setdefault(used, node)
        self.arguments = 0
        for node in graph.nodes:
            if node.op == "placeholder":
                places[node] = place()
                self.arguments += 1
        self.results = None
        for node in graph.nodes:
            if node.op == "placeholder" or node in places:
                continue
            if node.op == "output":
                self._output(node, take)
                continue
            function, args = self._call(node)
            kwargs = dict(node.kwargs)
            if any([_nested(a) for a in (*args, *kwargs.values())]) or kwargs:
                function, args = _filling(function, args, kwargs)
            takes = tuple([take(a) for a in args])
            if node.blocks and all([u.target is operator.getitem for u in node.users]):
                puts = []
                for user in node.users:
                    places[user] = place()
                    puts.append((user.args[1], places[user]))
                puts = tuple(puts)
            else:
                places[node] = place()
                puts = places[node]
            frees = tuple([places[used] for used in node._input_nodes if last.get(used) is node])
            steps.append(_step(function, takes, puts, frees))
            nodes.append(node)
        self.template, self.steps, self.nodes = template, steps, nodes

    def _output(self, node, take):
        value = node.args[0]
        if isinstance(value, tuple) and not hasattr(value, "_fields") and not any(map(_nested, value)):
            self.results = len(value)
            self._many, self._one, self._fill = tuple([take(a) for a in value]), None, None
        elif _nested(value):
            self.results = None
            self._fill, args = _filling(_first, (value,), {})
            self._many, self._one = tuple([take(a) for a in args]), None
            if isinstance(value, tuple):
                self.results = len(value)
        else:
            self._many, self._one, self._fill = None, take(value), None

    def _call(self, node):
        """The function of a node, and the arguments that it is called with."""
        if node.op == "call_function":
            if node.blocks:
                return _with_blocks(node.target, [Program(block, self.owner) for block in node.blocks]), node.args
            return node.target, node.args
        if node.op == "get_attr":
            return _look_up(self.owner, node.target), ()
        if node.op == "call_method":
            return _method(node.target), node.args
        return _call_module(self.owner, node.target), node.args

    def __call__(self, *args):
        regs = self.template.copy()
        regs[:self.arguments] = args
        step = None
        try:
            for step in self.steps:
                step(regs)
        except Exception as error:
            _say_where(error, self.nodes[self.steps.index(step)])
            raise
        if self._one is not None:
            return regs[self._one]
        if self._fill is None:
            return tuple([regs[i] for i in self._many])
        return self._fill(*[regs[i] for i in self._many])


def _step(function, takes, puts, frees):
    """A function that runs one call on the places of a program."""
    if type(puts) is tuple:
        def step(regs):
            value = function(*[regs[i] for i in takes])
            for i in frees:
                regs[i] = None
            for i, p in puts:
                regs[p] = value[i]
    elif len(takes) == 1 and not frees:
        (a,) = takes

        def step(regs):
            regs[puts] = function(regs[a])
    elif len(takes) == 1:
        (a,) = takes

        def step(regs):
            value = function(regs[a])
            regs[a] = None
            regs[puts] = value
    elif len(takes) == 2 and not frees:
        a, b = takes

        def step(regs):
            regs[puts] = function(regs[a], regs[b])
    elif len(takes) == 2:
        a, b = takes
        one, *more = frees
        other = more[0] if more else one

        def step(regs):
            value = function(regs[a], regs[b])
            regs[one] = regs[other] = None
            regs[puts] = value
    else:
        def step(regs):
            value = function(*[regs[i] for i in takes])
            for i in frees:
                regs[i] = None
            regs[puts] = value
    return step


def _first(x):
    return x


def _nested(a):
    """Whether an argument holds nodes inside."""
    return isinstance(a, (tuple, list, dict, slice)) and _has_node(a)


def _has_node(a):
    found = []
    map_aggregate(a, lambda x: found.append(x) if isinstance(x, Node) else x)
    return bool(found)


def _filling(function, args, kwargs):
    """A function of the nodes inside the arguments, in order, that puts their values in and calls."""
    inside = []

    def collect(x):
        if isinstance(x, Node) and x not in inside:
            inside.append(x)
        return x
    map_aggregate((args, kwargs), collect)
    where = {node: k for k, node in enumerate(inside)}
    args, kwargs = _plain(args), _plain(kwargs)
    makers = [_maker(a, where) for a in args]
    named = [(key, _maker(a, where)) for key, a in kwargs.items()]
    if not named:
        return lambda *values: function(*[make(values) for make in makers]), inside
    return (lambda *values: function(*[make(values) for make in makers],
                                     **{key: make(values) for key, make in named})), inside


def _plain(a):
    return dict(a) if isinstance(a, dict) else a


def _maker(a, where):
    """A function of the nodes' values that gives an argument."""
    if isinstance(a, Node):
        return operator.itemgetter(where[a])
    if not _nested(a):
        return lambda values: a
    if isinstance(a, slice):
        parts = [_maker(x, where) for x in (a.start, a.stop, a.step)]
        return lambda values: slice(*[make(values) for make in parts])
    if isinstance(a, dict):
        items = [(key, _maker(x, where)) for key, x in a.items()]
        return lambda values: {key: make(values) for key, make in items}
    parts = [_maker(x, where) for x in a]
    if isinstance(a, list):
        return lambda values: [make(values) for make in parts]
    if hasattr(a, "_fields"):
        made = type(a)
        return lambda values: made(*[make(values) for make in parts])
    return lambda values: tuple([make(values) for make in parts])


def _with_blocks(target, programs):
    if target is _blocks.cond:
        yes, no = programs
        return lambda predicate, *captured: (yes if predicate else no)(*captured)
    return lambda *args: target(*args, blocks=programs)


def _look_up(owner, target):
    """A function that looks a dotted name up when it is called; no name: the owner."""
    parts = target.split(".") if target else []
    if len(parts) == 1:
        return lambda: getattr(owner, target)

    def found():
        here = owner
        for part in parts:
            here = getattr(here, part)
        return here
    return found


def _method(name):
    return lambda owner, *args, **kwargs: getattr(owner, name)(*args, **kwargs)


def _call_module(owner, target):
    look_up = _look_up(owner, target)
    return lambda *args, **kwargs: look_up()(*args, **kwargs)


def _say_where(error, node):
    """Adds the user's line to an error, once a function."""
    where = node.meta.get("where")
    if where is None or node.blocks:
        return
    import linecache
    file, line, function = where
    text = linecache.getline(file, line).strip()
    error.add_note(f"  File \"{file}\", line {line}, in {function} (scripted)" + (f"\n    {text}" if text else ""))
