"""Runs a graph of script as a Python function, which is made once.

Nodes are statements, blocks are ``if``, ``for``, ``while`` and ``with``. The text holds names that are made here, names
of attributes that are identifiers, and literals; all other values are globals of the function.
"""
import keyword
import linecache
import operator

from ptcore.fx import blocks as _blocks
from ptcore.fx.node import Node, map_aggregate
from ptcore.jit._script import operations

__all__ = ["Program"]

MOST_LEVELS = 12                        # nested blocks in one function, since Python limits the nesting
_SIGNS = {operator.add: "+", operator.sub: "-", operator.mul: "*", operator.truediv: "/", operator.floordiv: "//",
          operator.mod: "%", operator.pow: "**", operator.matmul: "@", operator.and_: "&", operator.or_: "|",
          operator.xor: "^", operator.lshift: "<<", operator.rshift: ">>", operator.eq: "==", operator.ne: "!=",
          operator.lt: "<", operator.le: "<=", operator.gt: ">", operator.ge: ">="}
_FORMS = {operator.getitem: "{}[{}]", operator.neg: "-{}", operator.pos: "+{}", operator.invert: "~{}",
          operator.not_: "not {}", operations.negate: "not {}", operations.is_none: "{} is None",
          operations.is_not_none: "{} is not None", operations.is_same: "{} is {}",
          **{f: f"{{}} {sign} {{}}" for f, sign in _SIGNS.items()}}
# Templates, and how many of their first operands must not be literals: Python warns of ``1 is None``.
_NOT_OF_LITERALS = {operator.getitem: 1, operations.is_none: 1, operations.is_not_none: 1, operations.is_same: 2}
_NUMBERS = ("int", "float", "bool", "complex", "str", "None")       # kinds whose values need not be freed early


class Program:
    """A graph ready to run.

    Parameters
    ----------
    graph : Graph
    owner : Module, optional
        The module in which ``get_attr`` and ``call_module`` look up names.

    Attributes
    ----------
    text : str
        The function that runs it.
    results : int or None
        How many values a tuple that it returns has.
    """

    def __init__(self, graph, owner=None):
        self.graph = graph
        writer = _Writer(owner)
        arguments = [writer.name() for _ in graph.find_nodes(op="placeholder")]
        writer.line(f"def run({', '.join(arguments)}):")
        writer.depth = 1
        result = writer.graph(graph, arguments)
        writer.line(f"return {writer.value(result)}")
        self.text, self._nodes = "\n".join(writer.lines) + "\n", writer.nodes
        self.results = len(result[0]) if isinstance(result[0], tuple) and not hasattr(result[0], "_fields") else None
        exec(compile(self.text, "<ptcore graph>", "exec"), writer.space)
        self._run = writer.space.pop("run")

    def __call__(self, *args):
        try:
            return self._run(*args)
        except Exception as error:
            self._say_where(error)
            raise

    def _say_where(self, error):
        """Adds the user's line to an error, once for each function."""
        at, node = error.__traceback__, None
        while at is not None and node is None:
            node = self._nodes.get(at.tb_lineno) if at.tb_frame.f_code is self._run.__code__ else None
            at = at.tb_next
        where = None if node is None else node.meta.get("where")
        if where is None or node.blocks:
            return
        file, line, function = where
        text = linecache.getline(file, line).strip()
        error.add_note(f"  File \"{file}\", line {line}, in {function} (scripted)" + (f"\n    {text}" if text else ""))


class _Writer:
    """Writes statements."""

    def __init__(self, owner):
        self.owner, self.space, self.constants = owner, {"owner": owner}, {}
        self.lines, self.depth, self.names = [], 0, 0
        self.nodes = {}                 # line of the text -> the node it comes from

    def name(self):
        self.names += 1
        return f"v{self.names}"

    def line(self, text, node=None):
        self.lines.append("    " * self.depth + text)
        if node is not None:
            self.nodes[len(self.lines)] = node

    # -- values ----------------------------------------------------------------------------------------------

    def constant(self, x):
        """A constant as text: a literal, or the name of a global."""
        if x is None or type(x) in (bool, str):
            return repr(x)
        if type(x) is int and abs(x) < 1 << 63:
            return repr(x) if x >= 0 else f"({x})"
        known = self.constants.get(id(x))
        if known is None:
            known = self.constants[id(x)] = f"c{len(self.constants)}"
            self.space[known] = x
        return known

    def value(self, pair):
        """A node's argument as an expression. ``pair`` holds the argument and the names of nodes."""
        a, env = pair
        if isinstance(a, Node):
            return env[a]
        if not isinstance(a, (tuple, list, dict, slice)) or not _has_node(a):
            return self.constant(a)
        if isinstance(a, slice):
            return f"{self.constant(slice)}({', '.join([self.value((x, env)) for x in (a.start, a.stop, a.step)])})"
        if isinstance(a, dict):
            return "{" + ", ".join([f"{self.constant(key)}: {self.value((x, env))}" for key, x in a.items()]) + "}"
        parts = "".join([f"{self.value((x, env))}, " for x in a])
        if isinstance(a, list):
            return f"[{parts}]"
        return f"{self.constant(type(a))}({parts})" if hasattr(a, "_fields") else f"({parts})"

    def attribute(self, path):
        """The expression that looks up a dotted name of the owner."""
        text = "owner"
        for part in path.split(".") if path else ():
            text = self.member(text, part)
        return text

    def member(self, text, name):
        if _is_word(name):
            return f"{text}.{name}"
        return f"{self.constant(getattr)}({text}, {name!r})"

    # -- statements ------------------------------------------------------------------------------------------

    def graph(self, graph, arguments):
        """Writes the nodes of a graph; returns its result and the names of its nodes."""
        env = dict(zip(graph.find_nodes(op="placeholder"), arguments))
        last, own, result = {}, set(), None
        for node in reversed(graph.nodes):
            for used in node._input_nodes:
                last.setdefault(used, node)
        for node in graph.nodes:
            if node.op == "output":
                result = node.args[0]
            elif node.op != "placeholder" and node not in env:
                own.update(self.node(node, env))
                done = [used for used in node._input_nodes if used in own and last[used] is node
                        and getattr(used.type, "kind", None) not in _NUMBERS]
                if done:
                    self.line(" = ".join([env[used] for used in done]) + " = None")
        return result, env

    def node(self, node, env):
        """Writes a node; returns the nodes that have a name of their own afterwards."""
        if node.blocks:
            if self.depth < MOST_LEVELS:
                return self.with_blocks(node, env)
            text = self.apart(node, env)
        else:
            text = self.call(node, env)
        env[node] = self.name()
        self.line(f"{env[node]} = {text}", node)
        return (node,)

    def call(self, node, env):
        if node.op == "get_attr":
            return self.attribute(node.target)
        args = [self.value((a, env)) for a in node.args]
        form = _FORMS.get(node.target) if node.op == "call_function" and not node.kwargs else None
        if form is not None and form.count("{}") == len(args) and all(
                [a[0] in "vc" for a in args[:_NOT_OF_LITERALS.get(node.target, 0)]]):
            return form.format(*args)
        if node.op == "call_method":
            function = self.member(args.pop(0), node.target)
        else:
            function = self.attribute(node.target) if node.op == "call_module" else self.constant(node.target)
        named = {key: self.value((a, env)) for key, a in node.kwargs.items()}
        args += [f"{key}={x}" if _is_word(key) else f"**{{{key!r}: {x}}}" for key, x in named.items()]
        return f"{function}({', '.join(args)})"

    def apart(self, node, env):
        """A call of a node whose blocks become programs of their own."""
        programs = tuple([Program(block, self.owner) for block in node.blocks])
        args = [*[self.value((a, env)) for a in node.args], f"blocks={self.constant(programs)}"]
        return f"{self.constant(node.target)}({', '.join(args)})"

    def with_blocks(self, node, env):
        args = [self.value((a, env)) for a in node.args]
        if node.target is _blocks.loop:
            return self.loop(node, env, *args)
        names, made = self.results(node, env)
        head, *captured = args
        if node.target is _blocks.cond:
            self.line(f"if {head}:", node)
            self.block(node.blocks[0], captured, names)
            self.line("else:")
            self.block(node.blocks[1], captured, names)
        else:
            entered = self.name()
            self.line(f"with {head} as {entered}:", node)
            self.block(node.blocks[0], [entered, *captured], names)
        self.whole(node, env, names)
        return made

    def results(self, node, env):
        """Names of a node's results by number, and the nodes whose names can be deleted after their last use."""
        if not all([u.target is operator.getitem for u in node.users]):
            env[node] = self.name()
            return {k: self.name() for k in range(len(node.blocks[0].output_node().args[0]))}, (node,)
        names, users = {}, {}
        for user in node.users:
            users.setdefault(user.args[1], []).append(user)
        for k, same in users.items():
            names[k] = self.name()
            env.update(dict.fromkeys(same, names[k]))
        return names, tuple([same[0] for same in users.values() if len(same) == 1])

    def whole(self, node, env, names):
        """Writes the tuple of all results, if a node uses it."""
        if node in env:
            self.line(f"{env[node]} = ({''.join([f'{name}, ' for name in names.values()])})")

    def block(self, block, arguments, names):
        self.depth += 1
        result, env = self.graph(block, arguments)
        for k, name in names.items():
            self.line(f"{name} = {self.value((result[k], env))}")
        self.line("pass")
        self.depth -= 1

    def loop(self, node, env, trips, condition, *values):
        (block,) = node.blocks
        names, made = self.results(node, env)
        n = len(block.output_node().args[0]) - 1
        carried = [names.get(k) or self.name() for k in range(n)]
        for name, x in zip(carried, values):
            self.line(f"{name} = {x}")
        index, again = self.name(), self.name()
        counted = node.args[0] is not None
        if counted:
            trips = trips if condition == "True" else f"{trips} if {condition} else 0"
            self.line(f"for {index} in {self.constant(range)}({trips}):", node)
        else:
            self.line(f"{index} = 0")
            self.line(f"{again} = {condition}")
            self.line(f"while {again}:", node)
        self.depth += 1
        result, inside = self.graph(block, [index, *carried, *values[n:]])
        given = [self.value((x, inside)) for x in result]
        moved = [(name, x) for name, x in zip(carried, given[1:]) if name != x]
        if not counted:
            moved += [(again, given[0]), (index, f"{index} + 1")]
        if counted and given[0] != "True":
            self.line(f"{again} = {given[0]}")
        if moved:
            self.line(f"{', '.join([name for name, _ in moved])} = {', '.join([x for _, x in moved])}")
        if counted and given[0] != "True":
            self.line(f"if not {again}:")
            self.line("    break")
        self.line("pass")
        self.depth -= 1
        self.whole(node, env, names)
        unused = [name for k, name in enumerate(carried) if k not in names]
        if unused:
            self.line(f"{' = '.join(unused)} = None")
        return made


def _is_word(name):
    """Whether a name may stand in the text. Python normalises names outside of ASCII (NFKC), which changes them."""
    return name.isascii() and name.isidentifier() and not keyword.iskeyword(name)


def _has_node(a):
    found = []
    map_aggregate(a, lambda x: found.append(x) if isinstance(x, Node) else x)
    return bool(found)
