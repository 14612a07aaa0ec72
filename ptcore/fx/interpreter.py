"""``Interpreter`` runs a graph node by node, for programs that watch or change it. ``Transformer`` makes another graph.
"""
import copy

from ptcore.fx.graph import Graph
from ptcore.fx.graph_module import GraphModule, filled, result_count
from ptcore.fx.node import map_aggregate
from ptcore.fx.proxy import Proxy, TracerBase

__all__ = ["Interpreter", "Transformer"]


class Interpreter:
    """Runs the nodes of a graph one by one; subclasses override a method for each kind of node.

    Parameters
    ----------
    module : Module
        A GraphModule, or what the names of ``graph`` belong to.
    garbage_collect_values : bool
        Whether values are dropped after their last use.
    graph : Graph, optional

    Examples
    --------
    >>> import ptcore
    >>> from ptcore.fx import Interpreter, symbolic_trace
    >>> class Count(Interpreter):
    ...     n = 0
    ...     def call_function(self, target, args, kwargs):
    ...         self.n += 1
    ...         return super().call_function(target, args, kwargs)
    >>> count = Count(symbolic_trace(lambda x: x.sin() + ptcore.cos(x)))
    >>> _ = count.run(ptcore.ones(2))
    >>> count.n
    2
    """

    def __init__(self, module, garbage_collect_values=True, graph=None):
        self.module, self.graph = module, module.graph if graph is None else graph
        self.submodules = dict(module.named_modules())
        self.env, self.name = {}, "Interpreter"
        self.garbage_collect_values = garbage_collect_values
        self.extra_traceback = True
        self._find_last_uses()

    def _find_last_uses(self):
        self.user_to_last_uses = {}
        met = set()
        for node in reversed(self.graph.nodes):
            for used in node._input_nodes:
                if used not in met:
                    met.add(used)
                    self.user_to_last_uses.setdefault(node, []).append(used)

    def _block(self, graph):
        """A block of a node as a function, run by an interpreter of the same class."""
        def run(*args):
            inner = copy.copy(self)
            inner.graph = graph
            inner._find_last_uses()
            return inner.run(*args, enable_io_processing=False)
        run.results = result_count(graph)
        return run

    def run(self, *args, initial_env=None, enable_io_processing=True):
        """Runs the graph and returns its result. ``initial_env`` holds known values of nodes."""
        self.env = {} if initial_env is None else dict(initial_env)
        if enable_io_processing:
            args = self.graph.process_inputs(*args)
        self.args_iter = iter(args)
        for node in self.graph.nodes:
            if node in self.env:
                continue
            try:
                self.env[node] = self.run_node(node)
            except Exception as error:
                if self.extra_traceback and hasattr(error, "add_note"):
                    where = "" if node.stack_trace is None else f"\nOriginal traceback:\n{node.stack_trace}"
                    error.add_note(f"While executing {node.format_node()}{where}")
                raise
            if self.garbage_collect_values:
                for used in self.user_to_last_uses.get(node, ()):
                    self.env.pop(used, None)
            if node.op == "output":
                result = self.env[node]
                return self.graph.process_outputs(result) if enable_io_processing else result
        return None

    def boxed_run(self, args_list):
        """Runs the graph on the items of a list, and empties the list."""
        args = list(args_list)
        args_list.clear()
        return self.run(*args)

    def run_node(self, n):
        """The value of a node."""
        args, kwargs = self.fetch_args_kwargs_from_env(n)
        if n.blocks:
            return n.target(*args, blocks=[self._block(block) for block in n.blocks])
        return getattr(self, n.op)(n.target, args, kwargs)

    def placeholder(self, target, args, kwargs):
        if target.startswith("*"):
            return list(self.args_iter)
        try:
            return next(self.args_iter)
        except StopIteration:
            if args:
                return args[0]
            raise RuntimeError(f"run: no argument was given for {target}") from None

    def get_attr(self, target, args, kwargs):
        return self.fetch_attr(target)

    def call_function(self, target, args, kwargs):
        return target(*args, **kwargs)

    def call_method(self, target, args, kwargs):
        first, *rest = args
        return getattr(first, target)(*rest, **kwargs)

    def call_module(self, target, args, kwargs):
        return self.fetch_attr(target)(*args, **kwargs)

    def output(self, target, args, kwargs):
        return args[0]

    def fetch_attr(self, target):
        """The attribute of the module at a dotted name."""
        here = self.module
        for k, part in enumerate(path := target.split(".") if target else []):
            if not hasattr(here, part):
                raise RuntimeError(f"run: the module has no {'.'.join(path[:k + 1])}")
            here = getattr(here, part)
        return here

    def fetch_args_kwargs_from_env(self, n):
        """The arguments of a node, with values in place of nodes."""
        return self.map_nodes_to_values(n.args, n), self.map_nodes_to_values(n.kwargs, n)

    def map_nodes_to_values(self, args, n):
        def value(node):
            if node not in self.env:
                raise RuntimeError(f"run: {n} uses {node}, which has not run; Graph.lint() says more")
            return self.env[node]
        return filled(args, value)


class _Appending(TracerBase):
    def __init__(self, graph):
        self.graph = graph


class Transformer(Interpreter):
    """An Interpreter whose values are proxies, so that its methods write another graph.

    Examples
    --------
    >>> import ptcore
    >>> from ptcore.fx import Transformer, symbolic_trace
    >>> class Swap(Transformer):
    ...     def call_function(self, target, args, kwargs):
    ...         return super().call_function(ptcore.cos if target is ptcore.sin else target, args, kwargs)
    >>> Swap(symbolic_trace(lambda x: ptcore.sin(x))).transform()(ptcore.zeros(1))
    tensor([1.])
    """

    def __init__(self, module):
        super().__init__(module)
        self.new_graph = Graph(tracer_cls=module.graph._tracer_cls)
        self.new_graph._trees = module.graph._trees
        self.tracer = _Appending(self.new_graph)
        self.tracer.root = module

    def placeholder(self, target, args, kwargs):
        default = args[0] if args else ...
        return Proxy(self.new_graph.placeholder(target, default_value=default), self.tracer)

    def get_attr(self, target, args, kwargs):
        return self.tracer.create_proxy("get_attr", target, args, kwargs)

    def call_module(self, target, args, kwargs):
        return self.tracer.create_proxy("call_module", target, args, kwargs)

    def call_function(self, target, args, kwargs):
        return self.tracer.create_proxy("call_function", target, args, kwargs)

    def call_method(self, target, args, kwargs):
        return self.tracer.create_proxy("call_method", target, args, kwargs)

    def run_node(self, n):
        if not n.blocks:                # blocks are copied unchanged
            return super().run_node(n)
        args, kwargs = self.fetch_args_kwargs_from_env(n)
        made = self.tracer.create_proxy(n.op, n.target, args, kwargs)
        made.node.blocks = tuple([copy.deepcopy(block) for block in n.blocks])
        return made

    def transform(self):
        """The transformed module."""
        result = self.run(enable_io_processing=False)
        if result is not None:
            self.new_graph.output(map_aggregate(result, lambda a: a.node if isinstance(a, Proxy) else a))
        return GraphModule(self.module, self.new_graph)


