"""Statements of script: assignments, branches, loops and their exits.

The variable ``$exit`` says how a block was left early: 0 not at all, 1 by continue, 2 by break, 3 by return, whose
value is in ``$return``. Statements after one that may set ``$exit`` go into a branch of their own.
"""
import ast
import operator

from ptcore.fx import blocks as _blocks
from ptcore.jit._script import operations, operators
from ptcore.jit._script.frames import Frame, missing, order_inputs
from ptcore.jit._script.source import NotSupportedError
from ptcore.jit._script.types import ANY, BOOL, INT, NONE, STR, TENSOR, Optional, is_subtype, unify
from ptcore.jit._script.values import Iterable, Method, Missing, Mod, Py, Val

__all__ = ["Statements"]

EXIT, RETURN = "$exit", "$return"
_DEEP = 30                      # limit of nested branches, including those of statements after a return
_INSTEAD = {
    ast.Try: "try: exceptions cannot be caught in script; test for what would raise by `if`",
    ast.Import: "import: import at the top of the file", ast.ImportFrom: "import: import at the top of the file",
    ast.Global: "global: pass what the function needs, and return what it makes",
    ast.Nonlocal: "nonlocal: pass what the function needs, and return what it makes",
    ast.FunctionDef: "functions inside functions: define it at the top of the file",
    ast.AsyncFunctionDef: "async functions: jit.fork runs a function beside others",
    ast.ClassDef: "classes inside functions: define it at the top of the file, with @jit.script",
    ast.AsyncFor: "async for: loops by for and while", ast.AsyncWith: "async with: with of context managers",
    ast.Match: "match: if, elif and else",
}


class Statements:
    """The part of the compiler that reads statements."""

    def block(self, statements):
        """Statements one after another, in the frame that is written."""
        statements = list(statements)
        for k, node in enumerate(statements):
            if self.frame.exited:
                return
            rest = statements[k + 1:]
            if isinstance(node, ast.If):
                if self.if_statement(node, rest):
                    return
            else:
                self.statement(node)
            if self.frame.exited:
                return
            if rest and not isinstance(self.frame.lookup(EXIT).arg, int):
                self.guarded(node, rest)
                return

    def guarded(self, node, rest):
        """Statements after one that may have left the function or the loop. Beyond the limit of nested branches, each
        statement gets its own branch."""
        if self.depth > _DEEP and len(rest) > 1:
            for one in rest:
                if not self.frame.exited:
                    self.guarded(node, [one])
            return
        status = self.frame.lookup(EXIT)
        if isinstance(status.arg, int):
            self.block(rest)
            return
        with self.at(node):
            go_on = self.emit(operator.eq, (status, Val(0, INT)), BOOL)

        def write():
            self.frame.vars[EXIT] = Val(0, INT)
            self.block(rest)
        self.branches(node, go_on, write, self.leave, {}, {})

    def leave(self):
        self.frame.exited = True

    def statement(self, node):
        with self.at(node):
            method = getattr(self, f"on_{type(node).__name__}", None)
            if method is None:
                what = _INSTEAD.get(type(node), f"{type(node).__name__} statements: assignments, if, for, while, with, "
                                    "assert, raise, return, break, continue, del and pass")
                name, _, instead = what.partition(": ")
                raise self.error(f"{name} is not supported in script. Supported instead: {instead}", NotSupportedError)
            method(node)

    def on_Pass(self, node):
        pass

    def on_Expr(self, node):
        if not isinstance(node.value, ast.Constant):
            self.expression(node.value)

    # -- assignments -------------------------------------------------------------------------------

    def on_Assign(self, node):
        value = self.expression(node.value, self.hint_of(node.targets[0]))
        for target in node.targets:
            self.assign(target, value)

    def hint_of(self, target):
        if isinstance(target, ast.Name):
            return self.frame.declared(target.id)[1]
        if isinstance(target, ast.Attribute):
            return self.type_of_target(target)
        if isinstance(target, ast.Subscript) and isinstance(target.value, ast.Name):
            owner = self.frame.lookup(target.value.id)
            if isinstance(owner, Val) and owner.type.kind in ("List", "Dict"):
                return owner.type if isinstance(target.slice, ast.Slice) else owner.type.args[-1]
        return None

    def on_AnnAssign(self, node):
        if node.value is None:
            if isinstance(node.target, ast.Name):
                raise self.error("an annotation without a value is not supported; give the variable a value",
                                 NotSupportedError)
            return
        t = self.source.annotation(node.annotation)
        value = self.convert(self.value(node.value, t), t, "the value")
        if isinstance(node.target, ast.Name):
            frame, known = self.frame.declared(node.target.id)
            if known is not None and frame is not self.frame and known != t:
                raise self.error(f"{node.target.id!r} is declared as {known} already, not {t}")
            self.frame.types[node.target.id] = t
            self.frame.annotated.add(node.target.id)
            self.frame.set(node.target.id, value)
        else:
            self.assign(node.target, Val(value.arg, t))

    def assign(self, target, value):
        """Gives a target a value."""
        with self.at(target):
            if isinstance(target, ast.Name):
                self.assign_name(target.id, value)
            elif isinstance(target, (ast.Tuple, ast.List)):
                self.unpack(target, value)
            elif isinstance(target, ast.Subscript):
                self.set_item(self.value(target.value), target.slice, self.as_value(value))
            elif isinstance(target, ast.Attribute):
                self.set_attribute(self.expression(target.value), target.attr, value)
            elif isinstance(target, ast.Starred):
                raise self.error("a starred target is not supported; take slices of the list", NotSupportedError)
            else:
                raise self.error(f"assignment to {ast.unparse(target)} is not supported", NotSupportedError)

    def assign_name(self, name, value):
        if not isinstance(value, Val):
            if isinstance(value, (Py, Mod, Method)):
                frame, known = self.frame.declared(name)
                if known is not None and frame is not self.frame:
                    raise self.error(f"{name!r} has type {known}; it cannot become a function, class or module here")
                self.frame.types.pop(name, None)
                self.frame.set(name, value)
                return
            value = self.as_value(value)
        frame, known = self.frame.declared(name)
        if known is None or (frame is self.frame and name not in frame.annotated and not is_subtype(value.type, known)):
            here = self.frame.lookup(name)
            if known is None and name not in self.frame.vars and here is not None and not isinstance(here, Missing):
                raise self.error(f"{name!r} is a function, class or module outside of this block; give the value "
                                 "another name")
            self.frame.types[name] = value.type
        elif known == NONE and value.type != NONE and name not in frame.annotated:
            frame.types[name] = Optional(value.type)        # None at first, and this type in a block
        elif not is_subtype(value.type, known):
            value = self.converted(value, known)
            if value is None:
                raise self.error(f"variable {name!r} has type {known} and cannot get a value of type {self.last_type}; "
                                 f"declare it as Optional or Union where it is first set, or use another name")
        self.frame.set(name, value)

    def unpack(self, target, value):
        n = len(target.elts)
        if isinstance(value, Iterable) and value.items is not None:
            items = value.items
        elif isinstance(value, list):
            items = value
        else:
            value = self.as_value(value)
            items = self.unpacked(value, n)
        for t in target.elts:
            if isinstance(t, ast.Starred):
                raise self.error("a starred target is not supported; take slices of the list", NotSupportedError)
        if len(items) != n:
            raise self.error(f"{n} targets for {len(items)} values")
        for t, item in zip(target.elts, items):
            self.assign(t, item)

    def unpacked(self, value, n):
        """The ``n`` items of a value that is unpacked."""
        t = value.type
        if t.is_tuple:
            return [self.tuple_item(value, k) for k in range(len(t.args))]
        if t.kind == "List":
            value = self.emit(operations.checked_length, (value, Val(n, INT)), t)
            return [self.emit(operator.getitem, (value, Val(k, INT)), t.args[0]) for k in range(n)]
        if t == TENSOR:
            rows = self.emit(operations.rows_of, (value,), TENSOR)
            rows = self.emit(operations.checked_length, (rows, Val(n, INT)), TENSOR)
            return [self.emit(operator.getitem, (rows, Val(k, INT)), TENSOR) for k in range(n)]
        if t == STR:
            rows = self.emit(operations.checked_length, (value, Val(n, INT)), STR)
            return [self.emit(operator.getitem, (rows, Val(k, INT)), STR) for k in range(n)]
        raise self.error(f"a value of type {t} cannot be unpacked")

    def on_AugAssign(self, node):
        target = node.target
        if isinstance(target, ast.Name):
            old = self.value(target)
            self.assign_name(target.id, self.augmented(node, old, self.value(node.value, old.type)))
        elif isinstance(target, ast.Attribute):
            owner = self.expression(target.value)           # once, as Python does
            old = self.as_value(self.attribute(owner, target.attr))
            self.set_attribute(owner, target.attr, self.augmented(node, old, self.value(node.value, old.type)))
        elif isinstance(target, ast.Subscript):
            owner = self.value(target.value)
            if isinstance(target.slice, ast.Slice) and owner.type.kind == "List":
                raise self.error("augmented assignment to a slice of a list is not supported", NotSupportedError)
            index = self.index_of(owner, target.slice)
            old = self.get_item(owner, index)
            self.put_item(owner, index, self.augmented(node, old, self.value(node.value, old.type)))
        else:
            raise self.error("this augmented assignment is not supported", NotSupportedError)

    def augmented(self, node, old, new):
        return operators.binary(self, type(node.op), old, new, inplace=True)

    def on_Delete(self, node):
        for target in node.targets:
            with self.at(target):
                if isinstance(target, ast.Name):
                    self.expression(target)
                    self.frame.set(target.id, missing(target.id, f"it was deleted in line {self.place.line}"))
                elif isinstance(target, ast.Subscript):
                    owner = self.value(target.value)
                    if owner.type.kind not in ("List", "Dict"):
                        raise self.error(f"del of an item of {owner.type} is not supported; lists and dicts have it")
                    if isinstance(target.slice, ast.Slice):
                        index = self.slice_of(target.slice)
                    else:
                        index = self.index_of(owner, target.slice)
                    self.emit(operator.delitem, (owner, index), NONE)
                else:
                    raise self.error("del of this is not supported; variables and items of lists and dicts are deleted",
                                     NotSupportedError)

    # -- leaving -----------------------------------------------------------------------------------

    def on_Return(self, node):
        value = Val(None, NONE) if node.value is None else self.value(node.value, self.returns)
        if self.returns is not None:
            value = self.convert(value, self.returns, "the returned value")
        self.returned.append(value.type)
        self.frame.set(RETURN, value)
        self.frame.set(EXIT, Val(3, INT))
        self.frame.exited = True

    def on_Break(self, node):
        self.check_loop("break")
        self.note_types()
        self.frame.set(EXIT, Val(2, INT))
        self.frame.exited = True

    def on_Continue(self, node):
        self.check_loop("continue")
        self.note_types()
        self.frame.set(EXIT, Val(1, INT))
        self.frame.exited = True

    def note_types(self):
        """Notes the types that the loop's variables have where a round ends."""
        for name, found in self.leaving.items():
            value = self.frame.lookup(name)
            if isinstance(value, Val):
                found.append(value.type)

    def check_loop(self, word):
        if self.written_out:
            raise self.error(f"{word} in a loop over modules or a tuple is not supported: such a loop is written out "
                             "at script time; use `if`", NotSupportedError)

    def on_Raise(self, node):
        if node.exc is None:
            raise self.error("raise alone is not supported: nothing is caught in script", NotSupportedError)
        if node.cause is not None and not (isinstance(node.cause, ast.Constant) and node.cause.value is None):
            raise self.error("raise from is not supported: nothing is caught in script", NotSupportedError)
        if isinstance(node.exc, ast.Call):
            cls = self.expression(node.exc.func)
            if node.exc.keywords:
                raise self.error("exceptions with arguments by name are not supported", NotSupportedError)
            args = [self.value(a) for a in node.exc.args]
        else:
            cls, args = self.expression(node.exc), []
        if not isinstance(cls, Py) or not isinstance(cls.obj, type) or not issubclass(cls.obj, Exception):
            raise self.error("what is raised must be a class of exceptions, or its call", NotSupportedError)
        self.emit(operations.raise_error, (Val(cls.obj, ANY), *args), NONE)
        self.frame.exited = True

    def on_Assert(self, node):
        test = self.condition(node.test)

        def fail():
            args = () if node.msg is None else (self.value(node.msg),)
            self.emit(operations.fail_assertion, args, NONE)
            self.frame.exited = True
        if test.static is not None:
            if not test.static:
                fail()
            return
        self.branches(node, test.value, lambda: None, fail, test.yes, test.no)

    # -- branches ----------------------------------------------------------------------------------

    def if_statement(self, node, rest):
        """An ``if``, with the statements that follow it. They belong to the other branch if one is always left.

        Returns
        -------
        bool
            Whether what follows is written by this.
        """
        with self.at(node):
            test = self.condition(node.test)
            yes, no = list(node.body), list(node.orelse)
            if test.static is not None:
                self.refine(test.yes if test.static else test.no)
                self.block(yes if test.static else no)
                return False
            took = always_left(yes) != always_left(no) and self.depth <= _DEEP
            if took and always_left(yes):
                no = no + rest
            elif took:
                yes = yes + rest
            self.branches(node, test.value, lambda: self.block(yes), lambda: self.block(no), test.yes, test.no)
            return took

    def branches(self, node, predicate, yes, no, refined_yes, refined_no):
        """A call of ``cond``; ``yes`` and ``no`` write its blocks. Variables that both set are its results."""
        outer = self.frame
        frames = []
        self.depth += 1
        for write, refined in ((yes, refined_yes), (no, refined_no)):
            self.frame = Frame(parent=outer)
            self.refine(refined)
            write()
            frames.append(self.frame)
        self.depth -= 1
        self.frame = outer
        names = [*dict.fromkeys([*frames[0].assigned, *frames[1].assigned])]
        results, outputs = [], ([], [])
        for name in names:
            self.join(name, frames, results, outputs, node)
        self.finish_cond(node, predicate, frames, outputs, results)
        if frames[0].exited and frames[1].exited:
            outer.exited = True
        elif frames[0].exited != frames[1].exited:
            self.keep_refinements(frames[0] if frames[1].exited else frames[1], names)

    def keep_refinements(self, frame, names):
        """Keeps the narrowed types of the branch that runs on, if the other one is always left."""
        for name, value in frame.vars.items():
            if name not in names and isinstance(value, Val):
                here = self.frame.lookup(name)
                if isinstance(here, Val) and here.type != value.type:
                    self.frame.vars[name] = Val(here.arg, value.type)

    def join(self, name, frames, results, outputs, node):
        """Joins a variable's values behind two branches."""
        values = [frame.lookup(name) for frame in frames]
        left = [frame.exited for frame in frames]
        special = name.startswith("$")
        if all(left) and not special:           # the next round, or the code behind the loop, gets these values
            if not all([isinstance(v, Val) for v in values]):
                return
            t = unify(values[0].type, values[1].type) or ANY
        elif not special:
            live = [v for v, gone in zip(values, left) if not gone]
            why = next((v for v in live if v is None or isinstance(v, Missing)), self)
            if why is not self:
                word = "if" if isinstance(node, ast.If) else "statement"
                text = f"it is set in one branch of the `{word}` in line {self.place_of(node).line} only"
                self.frame.set(name, why if isinstance(why, Missing) else missing(name, text))
                return
            if not all([isinstance(v, Val) for v in live]):
                if len(live) == 1 or _same_static(*live):
                    self.frame.set(name, live[0])
                else:
                    self.frame.set(name, missing(name, "it is another function, class or module in each branch"))
                return
            t = live[0].type if len(live) == 1 else unify(live[0].type, live[1].type)
            declared = self.frame.declared(name)[1]
            if t is None and declared is not None and all([is_subtype(v.type, declared) for v in live]):
                t = declared
            if t is None:
                self.frame.set(name, missing(name, f"its type is {live[0].type} in one branch and {live[1].type} in "
                                             f"the other (line {self.place_of(node).line})"))
                return
            if declared is None:
                self.frame.types[name] = next((f.types[name] for f, gone in zip(frames, left)
                                               if not gone and name in f.types and f.types[name] == t), t)
        else:
            t = INT if name == EXIT else ANY
        args = [v.arg if isinstance(v, Val) else None for v in values]
        if special:
            if all([isinstance(a, int) or a is None for a in args]) and args[0] == args[1] and name == EXIT:
                self.frame.set(name, Val(args[0], t))
                return
        elif not any(left) and _same_constant(*args):
            self.frame.set(name, Val(args[0], t))
            return
        for frame, out, a in zip(frames, outputs, args):
            out.append(frame.local(a))
        results.append((name, t))

    def finish_cond(self, node, predicate, frames, outputs, results):
        captured = [*dict.fromkeys([*frames[0].captured, *frames[1].captured])]
        for frame, out in zip(frames, outputs):
            inputs = [frame.node(x) for x in captured]
            order_inputs(frame.graph, inputs)
            frame.graph.output(tuple(out))
        with self.at(node):
            made = self.emit(_blocks.cond, (predicate, *[Val(x, x.type) for x in captured]), None)
            made.arg.blocks = (frames[0].graph, frames[1].graph)
            for k, (name, t) in enumerate(results):
                self.frame.set(name, self.emit(operator.getitem, (made, Val(k, INT)), t, name=name.lstrip("$")))
        return made

    def choose(self, node, predicate, yes, no):
        """An expression of one of two values, which ``yes`` and ``no`` write. Returns the joined value."""
        outer = self.frame
        frames, values = [], []
        for write in (yes, no):
            self.frame = Frame(parent=outer)
            values.append(write())
            frames.append(self.frame)
        self.frame = outer
        if values[0].arg is True and values[1].arg is False and not any([len(frame.graph.nodes) for frame in frames]):
            return predicate
        t = unify(values[0].type, values[1].type)
        if t is None:
            raise self.error(f"one branch gives {values[0].type}, the other {values[1].type}; both must have one type")
        outputs = [[frame.local(v.arg)] for frame, v in zip(frames, values)]
        self.finish_cond(node, predicate, frames, outputs, [("$value", t)])
        made = self.frame.vars.pop("$value")
        self.frame.assigned.pop("$value")
        return made

    # -- loops -------------------------------------------------------------------------------------

    def on_While(self, node):
        if node.orelse:
            raise self.error("else of a loop is not supported; set a flag before break", NotSupportedError)
        first = self.condition(node.test)
        if first.static is False:
            return
        start = Val(True, BOOL) if first.static else first.value

        def body(frame):
            self.refine(first.yes)
            self.block(node.body)

        forever = [False]

        def again():
            with self.at(node.test):
                test = self.condition(node.test)
                forever[:] = [test.static is True]
                return Val(test.static, BOOL) if test.static is not None else test.value
        self.loop(node, None, start, node.body, body, again)
        if first.static and forever[0] and not has_break(node.body):
            self.frame.exited = True            # by return or an error alone

    def on_For(self, node):
        if node.orelse:
            raise self.error("else of a loop is not supported; set a flag before break", NotSupportedError)
        with self.at(node.iter):
            over = self.loop_source(node.iter)
        if over.items is not None:
            self.written_out_loop(node, over.items)
            return
        self.loop_over(node, over, node.body + [node.target], lambda item: (self.assign(node.target, item),
                                                                           self.block(node.body)))

    def loop_over(self, node, over, assigned, write):
        """A loop over an object with a length and items; ``write(item)`` writes its body."""
        length = over.length(self)
        if over.fixed:
            trips, start, again = length, Val(True, BOOL), None
        else:
            trips = None
            start = self.emit(operator.gt, (length, Val(0, INT)), BOOL)

            def again():
                number = self.emit(operator.add, (self.number, Val(1, INT)), INT)
                return self.emit(operator.lt, (number, over.length(self)), BOOL)

        def body(frame):
            number = Val(frame.index, INT)
            write(over.item(self, number))
            self.number = number
        self.loop(node, trips, start, assigned, body, again)

    def loop(self, node, trips, start, assigned, write, again):
        """A call of ``loop``, which passes variables that exist before the loop and that the body sets.

        A passed variable has its type before the loop. Where the body gives it another type, the variable gets its
        declared type, and the body is written once more.
        """
        outer = self.frame
        names = [n for n in names_set(assigned) if outer.lookup(n) is not None]
        carried = [n for n in names if isinstance(outer.lookup(n), Val)]
        types = {n: outer.lookup(n).type for n in carried}
        before = self.written_out, self.number, self.leaving, len(self.returned)
        special = [RETURN] if has_return(assigned) else []
        while True:
            frame = Frame(parent=outer)
            frame.index = frame.input("index", INT)
            for name in names:
                if name in types:
                    frame.vars[name] = Val(frame.input(name, types[name]), types[name])
                else:
                    frame.vars[name] = missing(name, "it is a function, class or module that is set again in a loop")
            if special:
                frame.vars[RETURN] = Val(frame.input("returned", ANY), ANY)
            inputs = {name: frame.vars[name].arg for name in carried + special}
            frame.vars[EXIT] = Val(0, INT)
            self.written_out, self.frame, self.leaving = False, frame, {name: [] for name in carried}
            write(frame)
            self.forget_refinements(frame, names, carried, types)
            status = frame.lookup(EXIT)
            condition = self.next_condition(node, frame, status, again)
            self.note_types()
            ends = self.leaving
            self.frame = outer
            self.written_out, self.number, self.leaving, n = before
            wider = [name for name, found in ends.items() if not all([is_subtype(t, types[name]) for t in found])]
            if not wider:
                break
            del self.returned[n:]
            for name in wider:
                if types[name] == outer.declared(name)[1]:
                    raise self.error(f"variable {name!r} has type {types[name]} before the loop and "
                                     f"{ends[name][-1]} behind a round")
                types[name] = outer.declared(name)[1]
        self.finish_loop(node, frame, trips, start, condition, status, carried, special, inputs, types)
        for name in names_set(assigned):
            if name not in carried and outer.lookup(name) is None:
                outer.vars[name] = missing(name, f"it is set in the loop in line {self.place_of(node).line} only, "
                                           "which may run no round; set it before")

    @staticmethod
    def forget_refinements(frame, names, carried, types):
        """Drops the types that the rest of the body has narrowed: the condition of the next round runs behind
        ``continue`` as well."""
        for name, value in list(frame.vars.items()):
            if name in carried:
                if isinstance(value, Val) and value.type != types[name] and is_subtype(value.type, types[name]):
                    frame.vars[name] = Val(value.arg, types[name])
            elif isinstance(value, Val) and name not in (*names, *frame.assigned) and not name.startswith("$"):
                del frame.vars[name]

    def finish_loop(self, node, frame, trips, start, condition, status, carried, special, inputs, types):
        outer, order, outputs, initial = self.frame, [frame.index, *inputs.values()], [], []
        gone = [name for name in carried if not isinstance(frame.lookup(name), Val)]
        for name in carried + special:
            value, here = frame.lookup(name), outer.lookup(name)
            outputs.append(inputs[name] if name in gone else frame.local(value.arg))
            initial.append(here if isinstance(here, Val) else Val(None, ANY))
        if special:
            outputs.append(frame.local(status.arg))
            order.append(frame.input("exit", INT))
            initial.append(Val(0, INT))
        last = frame.local(condition.arg)
        fixed = [*frame.captured]
        order_inputs(frame.graph, order + [frame.captured[x] for x in fixed])
        frame.graph.output((last, *outputs))
        with self.at(node):
            made = self.emit(_blocks.loop, (Val(None, NONE) if trips is None else trips, start, *initial,
                                            *[Val(x, x.type) for x in fixed]), None)
            made.arg.blocks = (frame.graph,)
            for k, name in enumerate(carried + special):
                if name in gone:
                    outer.set(name, missing(name, "it was deleted in a loop"))
                else:
                    outer.set(name, self.emit(operator.getitem, (made, Val(k, INT)), types.get(name, ANY),
                                              name=name.lstrip("$")))
            if special:
                status = self.emit(operator.getitem, (made, Val(len(carried) + 1, INT)), INT)
                outer.set(EXIT, self.emit(operations.after_loop, (status,), INT))

    def next_condition(self, node, frame, status, again):
        """The condition of another round."""
        if isinstance(status.arg, int):
            if status.arg >= 2 or (frame.exited and status.arg == 0):
                return Val(False, BOOL)
            frame.exited = False
            with self.at(node):
                return Val(True, BOOL) if again is None else again()
        frame.exited = False
        with self.at(node):
            goes_on = self.emit(operator.lt, (status, Val(2, INT)), BOOL)
            if again is None:
                return goes_on
            return self.choose(node, goes_on, again, lambda: Val(False, BOOL))

    def written_out_loop(self, node, items):
        """A loop over modules or a tuple, whose body is written once for each item."""
        before, self.written_out = self.written_out, True
        body = []
        for item in items:
            body += [_Bind(node.target, item), *node.body]
        self.block(body)
        self.written_out = before

    def on__Bind(self, node):
        self.assign(node.target, node.value)

    # -- with --------------------------------------------------------------------------------------

    def on_With(self, node):
        self.with_items(node, list(node.items))

    def with_items(self, node, items):
        if not items:
            self.block(node.body)
            return
        item, *rest = items
        with self.at(item.context_expr):
            context = self.expression(item.context_expr)
        if isinstance(context, Py) and context.obj is None:
            self.with_items(node, rest)
            return
        context = self.as_value(context)
        entered = self.entered_type(context)
        outer = self.frame
        frame = Frame(parent=outer)
        first = frame.input("entered", entered)
        self.frame = frame
        if item.optional_vars is not None:
            self.assign(item.optional_vars, Val(first, entered))
        self.with_items(node, rest)
        self.frame = outer
        outputs, results = [], []
        for name in frame.assigned:
            value = frame.vars[name]
            if not isinstance(value, Val):
                outer.set(name, value)
                continue
            if isinstance(value.arg, int) and name == EXIT:
                outer.set(name, value)
                continue
            outputs.append(frame.local(value.arg))
            results.append((name, value.type))
            if outer.declared(name)[1] is None and name in frame.types:
                outer.types[name] = frame.types[name]
        fixed = [*frame.captured]
        order_inputs(frame.graph, [first, *[frame.captured[x] for x in fixed]])
        frame.graph.output(tuple(outputs))
        with self.at(node):
            made = self.emit(_blocks.with_block, (context, *[Val(x, x.type) for x in fixed]), None)
            made.arg.blocks = (frame.graph,)
            for k, (name, t) in enumerate(results):
                outer.set(name, self.emit(operator.getitem, (made, Val(k, INT)), t, name=name.lstrip("$")))
        outer.exited = outer.exited or frame.exited


class _Bind(ast.stmt):
    """An assignment of an existing value."""

    def __init__(self, target, value):
        super().__init__(lineno=target.lineno, col_offset=target.col_offset)
        self.end_lineno, self.end_col_offset = target.end_lineno, target.end_col_offset
        self.target, self.value = target, value


def _same_static(a, b):
    if type(a) is not type(b):
        return False
    if isinstance(a, Py):
        return a.obj is b.obj
    return isinstance(a, Mod) and a.path == b.path


def _same_constant(a, b):
    simple = (int, float, str, type(None))
    return isinstance(a, simple) and type(a) is type(b) and a == b and repr(a) == repr(b)


def always_left(statements):
    """Whether control never reaches the end of the statements, judged by their form."""
    for s in statements:
        if isinstance(s, (ast.Return, ast.Break, ast.Continue, ast.Raise)):
            return True
        if isinstance(s, ast.If) and always_left(s.body) and always_left(s.orelse):
            return True
        if isinstance(s, ast.With) and always_left(s.body):
            return True
    return False


def _inside(statements, kinds, loops):
    for s in statements:
        if isinstance(s, kinds):
            return True
        if isinstance(s, (ast.For, ast.While)) and not loops:
            continue
        for part in ("body", "orelse"):
            if _inside(getattr(s, part, []) if isinstance(s, ast.stmt) else [], kinds, loops):
                return True
    return False


def has_return(statements):
    return _inside(statements, (ast.Return,), True)


def has_break(statements):
    return _inside(statements, (ast.Break,), False)


def names_set(statements):
    """The variables that statements assign, in order. Variables of comprehensions do not count."""
    found = {}

    def target(t):
        if isinstance(t, ast.Name):
            found[t.id] = None
        elif isinstance(t, (ast.Tuple, ast.List)):
            for x in t.elts:
                target(x)

    def look(s):
        if isinstance(s, (ast.Name, ast.Tuple, ast.List)):
            target(s)
        elif isinstance(s, ast.Assign):
            for t in s.targets:
                target(t)
        elif isinstance(s, (ast.AugAssign, ast.AnnAssign)):
            target(s.target)
        elif isinstance(s, ast.Delete):
            for t in s.targets:
                target(t)
        elif isinstance(s, ast.For):
            target(s.target)
        elif isinstance(s, ast.With):
            for item in s.items:
                if item.optional_vars is not None:
                    target(item.optional_vars)
        for part in ("body", "orelse"):
            for x in getattr(s, part, []) if isinstance(s, ast.stmt) else []:
                look(x)
    for s in statements:
        look(s)
    return [*found]
