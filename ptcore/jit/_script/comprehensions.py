"""Iterables of loops, and comprehensions."""
import ast
import enum
import operator

from ptcore.jit._script import operations, types
from ptcore.jit._script.frames import Frame
from ptcore.jit._script.source import NotSupportedError
from ptcore.jit._script.types import INT, NONE, STR, TENSOR, Dict, List
from ptcore.jit._script.values import Iterable, Mod, Py, Val

__all__ = ["Comprehensions"]


class Comprehensions:
    """The part of the compiler that reads iterables and comprehensions."""

    # -- iterables ---------------------------------------------------------------------------------

    def loop_source(self, tree):
        """The expression behind ``in`` of a loop. Keys, values and items of a dict are read in each round."""
        part = tree.func.attr if isinstance(tree, ast.Call) and isinstance(tree.func, ast.Attribute) else None
        if part in ("keys", "values", "items") and not tree.args and not tree.keywords:
            owner = self.expression(tree.func.value)
            if isinstance(owner, Val) and owner.type.kind == "Dict":
                return self.over_dict(owner, part)
            return self.iterable(self.call(self.attribute(owner, part), [], {}))
        x = self.expression(tree)
        return self.over_dict(x, "keys") if isinstance(x, Val) and x.type.kind == "Dict" else self.iterable(x)

    def over_dict(self, d, part):
        key, value = d.type.args
        keys = self.emit(operations.keys, (d,), List(key))

        def item(c, k):
            name = c.emit(operator.getitem, (keys, k), key)
            if part == "keys":
                return name
            x = c.emit(operator.getitem, (d, name), value)
            return x if part == "values" else [name, x]
        return Iterable(lambda c: c.emit(operations.unchanged_length, (d, keys), INT), item, False)

    def iterable(self, x):
        """The Iterable of a value, for a loop, a comprehension or ``list``."""
        if isinstance(x, Iterable):
            return x
        if isinstance(x, list):
            return Iterable(items=x)
        if isinstance(x, Mod):
            return Iterable(items=self.module_items(x))
        if isinstance(x, Py) and isinstance(x.obj, type) and issubclass(x.obj, enum.Enum):
            t = types.enum_type(x.obj)
            x = self.emit(operations.make_list, [Val(member, t) for member in x.obj], List(t))
        x = self.as_value(x)
        t = x.type
        if t.is_tuple:
            if len(set(t.args)) == 1 and len(t.args) > 8:
                x = self.emit(operations.as_list, (x,), List(t.args[0]))
                t = x.type
            else:
                return Iterable(items=[self.tuple_item(x, k) for k in range(len(t.args))])
        fixed = True
        if t.kind == "List":
            fixed = False
        elif t.kind == "Dict":
            x = self.emit(operations.keys, (x,), List(t.args[0]))
        elif t == TENSOR:
            x = self.emit(operations.rows_of, (x,), List(TENSOR))
        elif t == STR:
            x = self.emit(operations.characters, (x,), List(STR))
        else:
            raise self.error(f"a value of type {t} cannot be looped over. What can: range, lists, dicts, tuples, text, "
                             "tensors, ModuleList, ModuleDict, Sequential, Enum classes, and enumerate, zip, reversed "
                             "of these")
        inner = x.type.args[0]
        return Iterable(lambda c: c.emit(len, (x,), INT), lambda c, k: c.emit(operator.getitem, (x, k), inner), fixed)

    def list_from(self, over, inner=None):
        """A new list of the items of an Iterable."""
        if over.items is not None:
            return self.make_list([self.as_value(x) for x in over.items], inner)
        return self.collect(ast.Pass(), over, self.as_value, inner)      # items of zip are lists of values

    # -- comprehensions ----------------------------------------------------------------------------

    def on_ListComp(self, node, hint):
        over = self.one_generator(node)
        generator = node.generators[0]
        inner = hint.args[0] if hint is not None and hint.kind == "List" else None

        def item(x):
            self.bind(generator.target, x)
            return self.value(node.elt, inner)
        if over.items is not None:
            if generator.ifs:
                raise self.error("a comprehension over modules or a tuple has no `if`", NotSupportedError)
            made = []
            for x in over.items:
                self.frame = Frame(self.frame.graph, self.frame)
                made.append(item(x))
                self.frame = self.frame.parent
            return self.make_list(made, inner)
        return self.collect(node, over, item, inner, generator)

    on_GeneratorExp = on_ListComp

    def one_generator(self, node):
        if len(node.generators) != 1:
            raise self.error("a comprehension has one `for`; write loops for more", NotSupportedError)
        if node.generators[0].is_async:
            raise self.error("async comprehensions are not supported", NotSupportedError)
        with self.at(node.generators[0].iter):
            return self.loop_source(node.generators[0].iter)

    def bind(self, target, x):
        """Binds the variables of a comprehension, in its own frame alone."""
        if isinstance(target, ast.Name):
            self.frame.vars[target.id] = x if isinstance(x, (Val, Mod, Py)) else self.as_value(x)
            self.frame.types[target.id] = getattr(self.frame.vars[target.id], "type", None)
            return
        if not isinstance(target, (ast.Tuple, ast.List)):
            raise self.error("this target of a comprehension is not supported", NotSupportedError)
        items = x if isinstance(x, list) else self.unpacked(self.as_value(x), len(target.elts))
        if len(items) != len(target.elts):
            raise self.error(f"{len(target.elts)} targets for {len(items)} values")
        for t, item in zip(target.elts, items):
            self.bind(t, item)

    def collect(self, node, over, item, inner, generator=None):
        """A new list, which a loop fills."""
        made = self.emit(operations.make_list, (), None, name="list")
        found = []

        def append():
            x = item_value[0]
            x = item(x)
            t = inner or x.type
            found[:] = [t]
            self.emit(list.append, (made, self.convert(x, t, "an item of the list")), NONE)
        item_value = []

        def write(x):
            item_value[:] = [x]
            self.filtered(node, generator, append, x)
        self.loop_over(node, over, [], write)
        made.type = made.arg.type = List(found[0] if found else inner or TENSOR)        # no item if `if` never holds
        return made

    def filtered(self, node, generator, append, x):
        if generator is None or not generator.ifs:
            append()
            return
        self.bind(generator.target, x)
        tests = list(generator.ifs)
        tree = tests[0] if len(tests) == 1 else ast.copy_location(ast.BoolOp(ast.And(), tests), tests[0])
        test = self.condition(tree)
        if test.static is not None:
            if test.static:
                append()
            return
        self.branches(node, test.value, append, lambda: None, test.yes, test.no)

    def on_DictComp(self, node, hint):
        over = self.one_generator(node)
        generator = node.generators[0]
        made = self.emit(operations.make_dict, (), None, name="dict")
        found = []
        want = hint.args if hint is not None and hint.kind == "Dict" else (None, None)

        def write(x):
            self.filtered(node, generator, lambda: put(x), x)

        def put(x):
            self.bind(generator.target, x)
            key, value = self.value(node.key, want[0]), self.value(node.value, want[1])
            found[:] = [want[0] or key.type, want[1] or value.type]
            self.emit(operator.setitem, (made, key, value), NONE)
        if over.items is not None:
            for x in over.items:
                self.frame = Frame(self.frame.graph, self.frame)
                write(x)
                self.frame = self.frame.parent
        else:
            self.loop_over(node, over, [], write)
        found = found or [want[0] or STR, want[1] or TENSOR]
        made.type = made.arg.type = Dict(*found)
        return made
