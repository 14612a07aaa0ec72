"""``functionalize``: runs a function without writes in place.

``Functionalizer`` is the interpreter. A stand-in's payload holds a memory and the views that lead to the stand-in. The
memory holds a value; a write replaces the value by a new one.
"""
import functools
from copy import copy

import ptcore._ops as ops
from ptcore._dtype import can_cast, dtype
from ptcore._errors import DTypeError
from ptcore._interpret import Interpreter, Payload, aside, innermost, outside
from ptcore._ops.calling import run
from ptcore._ops.creation.creation import arange, empty_strided
from ptcore._ops.functions import (
    as_strided_scatter,
    complex_pair,
    diagonal_scatter,
    imag,
    index_copy,
    permute,
    real,
    reshape,
    row_major,
    select,
    select_scatter,
    slice_scatter,
    t,
    transpose,
    view_as_complex,
    view_as_real,
    with_values,
)
from ptcore._ops.table.ids import op_id, op_name
from ptcore._shape import overlaps
from ptcore._state import enable_grad, is_history_recorded
from ptcore._subclass import (
    carried_by,
    count_one,
    counted_by,
    counter_of_writes,
    fills_storage,
    payload_of,
    stands_for,
    storage_places,
)
from ptcore._tensor import Tensor
from ptcore._trees.tree import tree_flatten, tree_map, tree_unflatten
from ptcore.autograd.batch import Batcher
from ptcore.autograd.helpers import extent

INPLACE = 1
VIEW, RESHAPE, SLICE, WINDOW = op_id("view"), op_id("reshape"), op_id("slice"), op_id("as_strided_of")
# steps of views
DETACHED, PAIRS, NUMBERS = [(op_id(name), (), None) for name in ("detach", "view_as_real", "view_as_complex")]


class Apart:
    """The place of a step that detaches: the value that was written through it, which has a history of its own.

    The values of a memory are the same for all that show it, histories are not.
    """

    __slots__ = ("memory", "value", "version")

    def __init__(self, memory):
        self.memory, self.value, self.version = memory, None, -1

    def shown(self, whole):
        found = run(DETACHED[0], (whole,))
        if self.value is None:
            return found
        if self.version != self.memory.version:     # others wrote: other values, the same history
            with enable_grad():
                self.value, self.version = _detached(self.value, found), self.memory.version
        return self.value

    def write(self, value, is_recorded):
        """Takes the value that the next version of the memory will have here."""
        before = self.value
        if not is_recorded:
            with enable_grad():
                value = value if before is None else _detached(before, value)
        self.value, self.version = value, self.memory.version + 1


class Memory:
    """The value that tensors share if they are views of each other, and the number of its replacements.

    ``shared`` is set if tensors outside of this group show the same memory: then a write is refused.

    ``fills`` says whether the first tensor's elements fill a storage of its own: 2 in order, 1 in another order, which
    every value then has, 0 not at all. A window (``as_strided``) counts places of the storage. Then the value becomes
    the line of all places (`unroll`), ``low`` is the first of them, ``root`` is the step that leads to the first
    tensor, and ``windows`` has the windows of the line through which was written.
    """

    __slots__ = ("counter", "fills", "first", "low", "root", "shared", "value", "version", "windows")

    def __init__(self, value):
        self.value, self.version, self.shared = value, 0, False
        self.counter = counter_of_writes(value)
        self.fills = _fills(value)
        self.first = None if self.fills == 2 else value
        self.root, self.windows, self.low = (), {}, 0

    def unroll(self):
        """Prepares the value for windows: elements in order from the start of a storage of their own."""
        first = self.first
        if first is not None and not self.root:
            # sizes that are symbols get a guard: a window counts places of the storage that is there now
            shape, stride = [tuple(map(int, numbers)) for numbers in (first.shape, first.stride())]
            offset = first.storage_offset()
            self.low, end = _places_of(first, shape, stride, offset)
            line = run(WINDOW, (first, (end - self.low,), (1,), self.low, stride, offset))
            if self.low:
                line = run("clone", (line,))
            root = WINDOW, (shape, stride, offset - self.low, (1,), 0), None
            if self.version:
                line = put_back(root, line, self.value)
                self.windows[root[1][:3]] = None
            self.value, self.root = line, (root,)

    def note_write(self, steps):
        """Notes which places of the line a write through a chain of views may change."""
        if self.root:
            op, rest, _ = steps[0] if steps else DETACHED
            self.windows[rest[:3] if op == WINDOW else (tuple(self.value.shape), (1,), 0)] = None

    def copy_to(self, x):
        """Writes the value to the first tensor, and to what the program has written to around it."""
        if not self.root:
            x.copy_(self.value)
        for size, stride, offset in self.windows:
            place, rest = x, (size, stride, offset, (1,), 0)
            if rest != self.root[0][1]:
                place = run(WINDOW, (x, size, stride, offset + self.low, x.stride(), x.storage_offset()))
            place.copy_(run(WINDOW, (self.value, *rest)))


def _is_sample(x):
    """Whether x is a sample of a batch, which shows the memory of the first one."""
    payload = payload_of(x)
    while payload is not None and payload.tensor is not None:
        if isinstance(payload.owner, Batcher):
            return True
        payload = payload_of(payload.tensor)
    return False


def _places_of(x, shape, stride, offset):
    """The first place of x's storage that a program may name, and the one after the last."""
    if _is_sample(x):
        low, high = extent(shape, stride, offset)
        return low, high + 1
    return 0, storage_places(x)


def _fills(x):
    """Whether a tensor's elements fill its storage, or the part of a sample: 2 in order, 1 in another order, else 0."""
    if payload_of(x) is None or not _is_sample(x):
        return fills_storage(x)
    if x.storage_offset():
        return 0
    return 2 if x.is_contiguous() else int(extent(x.shape, x.stride(), 0) == (0, x.numel() - 1))


class Functional(Payload):
    """The payload of a stand-in: the memory, and the chain of views that leads to it: (op, other arguments, place).

    ``placed``: the chain begins at the line of places, else at the first tensor of the memory.
    """

    __slots__ = ("_seen", "_tensor", "memory", "placed", "views")
    known = True

    def __init__(self, owner, memory, views=(), tensor=None, placed=False):
        super().__init__(owner)
        self.memory, self.views, self.placed = memory, views, placed
        self._tensor, self._seen = tensor, memory.version if tensor is not None else -1

    @property
    def steps(self):
        """The chain from the value of the memory."""
        return self.views if self.placed else (*self.memory.root, *self.views)

    @property
    def tensor(self):
        """The value now."""
        if self._seen != self.memory.version:
            found = self.memory.value
            for step in self.steps:
                found = shown(step, found)
            self._tensor, self._seen = found, self.memory.version
        return self._tensor

    def write(self, value):
        """Replaces this view's part of the memory by another value, for all tensors that show it."""
        memory = self.memory
        if memory.shared:
            raise RuntimeError("functionalize: two arguments show the same memory, which is written to")
        if not memory.fills:
            memory.unroll()             # another value would have no gaps
        wholes, steps = [memory.value], self.steps
        for step in steps[:-1]:
            wholes.append(shown(step, wholes[-1]))
        found, is_recorded = value, is_history_recorded() or not self.owner.recorded or bool(self.owner.bodies)
        for step, whole in zip(reversed(steps), reversed(wholes)):
            if type(step[2]) is Apart:
                step[2].write(laid_as(found, whole), is_recorded)
            found = put_back(step, whole, found)
        memory.note_write(steps)
        if not is_recorded:
            with enable_grad():
                found = _detached(memory.value, found)
        count_one(memory.counter)
        found = laid_as(found, memory.value)
        if not _fills(found):           # a part of something larger was written
            found = run("clone", (found,))
        memory.value, memory.version = found, memory.version + 1
        # a view is shown again when it is asked for: the value lies elsewhere
        self._tensor, self._seen = (None, -1) if steps else (memory.value, memory.version)

    def __repr__(self):
        return f"FunctionalTensor({self.tensor!r})"

    def item(self, stand_in):
        return self.tensor.item()

    def detached(self):
        step = DETACHED[0], (), Apart(self.memory)
        return self.owner.stand_in(shown(step, self.tensor), self.memory, (*self.views, step), None, self.placed)

    def made_like(self, x):
        return x if carried_by(x, self.owner) is not None else self.owner.lift(x)


def laid_as(x, pattern):
    """``x`` with the order of dims in memory that ``pattern`` has; views and the order of sums depend on it."""
    if x.stride() == pattern.stride():
        return x
    order = sorted(range(x.ndim), key=lambda d: (-pattern.stride()[d], d))
    x = row_major(permute(x, tuple(order)))
    return permute(x, tuple([order.index(d) for d in range(len(order))]))


def shown(step, whole):
    """A view of a value, by one step."""
    op, rest, place = step
    if type(place) is Apart:
        return place.shown(whole)
    found = run(op, (whole, *rest))
    return found if place is None else found[place]


def put_back(step, whole, part):
    """The whole with its view by one step replaced by ``part``."""
    op, rest, place = step
    undo = UNDO.get(op_name(op))
    if undo is None:
        raise RuntimeError(f"functionalize: a write to what {op_name(op)} shows cannot be put back")
    return undo(whole, part, place, *rest)


def _seen_with(line, own):
    """The steps from a line of elements to the same memory seen with another dtype."""
    if line.dtype.is_complex and own is line.dtype.to_real():
        return [PAIRS]
    if own.is_complex and line.dtype is own.to_real():
        return [(RESHAPE, ((line.numel() // 2, 2),), None), NUMBERS]
    return [(RESHAPE, ((-1,),), None), (VIEW, (own,), None)]


def _viewed(whole, part, place, shape):
    return part.view(whole.dtype) if isinstance(shape, dtype) else _reshaped(whole, part, place)


def _reshaped(whole, part, place, *rest):
    if part.numel() != whole.numel():
        raise RuntimeError("functionalize: a tensor was written to of which several elements show the same memory")
    return reshape(part, whole.shape)


def _permuted(whole, part, place, dims):
    order = [d % whole.ndim for d in dims]
    return permute(part, tuple([order.index(d) for d in range(whole.ndim)]))


def _selected(whole, part, place, dim, index):
    return select_scatter(whole, part, dim, index)


def _sliced(whole, part, place, dim=0, start=None, end=None, step=1):
    if step > 0:
        return slice_scatter(whole, part, dim, start, end, step)
    n = whole.shape[dim]
    places = range(n)[start:end:step]
    return index_copy(whole, dim, arange(places.start, places.stop, places.step, device=whole.device), part)


def _one_of(whole, part, place, dim=0):
    return select_scatter(whole, part, dim, place)


def _piece(whole, part, place, sizes, dim=0):
    start = sum(sizes[:place])
    return slice_scatter(whole, part, dim, start, start + sizes[place], 1)


def _window(whole, part, place, size, stride, offset, *rest):
    if part.requires_grad and is_history_recorded() and overlaps(size, stride):     # the last of several writes counts
        raise RuntimeError("functionalize: windows that overlap are written to")
    return as_strided_scatter(whole, part, size, stride, offset)


def _unfolded(whole, part, place, dim, size, step):
    if step < size and part.shape[dim] > 1:
        raise RuntimeError("functionalize: windows that overlap are written to")
    places = arange(whole.numel(), device=whole.device).reshape(whole.shape).unfold(dim, size, step)
    return reshape(index_copy(reshape(whole, (-1,)), 0, reshape(places, (-1,)), reshape(part, (-1,))), whole.shape)


def _of_pairs(part):
    """Complex numbers of pairs, which need not be neighbours in memory: the part was put back into another view."""
    stride, offset = part.stride(), part.storage_offset()
    if stride[-1] == 1 and not any(s % 2 for s in (*stride[:-1], offset)):
        return view_as_complex(part)
    return complex_pair(select(part, -1, 0), select(part, -1, 1))


def _detached(whole, part, place=None):
    """A write that is not recorded changes the values of a tensor, and not its history."""
    return with_values(whole, part) if whole.dtype.is_floating_point or whole.dtype.is_complex else part


UNDO = {
    **dict.fromkeys(("reshape", "squeeze", "unsqueeze", "expand"), _reshaped),
    "view": _viewed,
    **dict.fromkeys(("split_evenly", "split_by_sizes", "split_by_slices", "split_unsafely", "split_by_sizes_unsafely"),
                    _piece),
    "transpose": lambda whole, part, place, a, b: transpose(part, a, b),
    "t": lambda whole, part, place: t(part),
    "permute": _permuted,
    "select": _selected,
    "slice": _sliced,
    "unbind": _one_of,
    "as_strided_of": _window,
    "real": lambda whole, part, place: complex_pair(part, imag(whole)),
    "imag": lambda whole, part, place: complex_pair(real(whole), part),
    "view_as_real": lambda whole, part, place: _of_pairs(part),
    "view_as_complex": lambda whole, part, place: view_as_real(part),
    "unfold": _unfolded,
    "detach": _detached,
    "diagonal": lambda whole, part, place, offset=0, dim1=0, dim2=1: diagonal_scatter(whole, part, offset, dim1, dim2),
}


def _pattern(x):
    """A tensor of meta with x's strides, or what is no tensor as it is."""
    if not isinstance(x, Tensor):
        return x
    pattern = empty_strided(x.shape, tuple([abs(s) for s in x.stride()]), dtype=x.dtype, device="meta")
    for d, s in enumerate(x.stride()):
        if s < 0:
            pattern = run(SLICE, (pattern, d, None, None, -1))
    return pattern


def copies(x, shape):
    """Whether ``reshape`` of a tensor with x's strides copies."""
    if x.is_contiguous():
        return False
    with aside():
        pattern = _pattern(x)
        whole = pattern if pattern._base is None else pattern._base
        return pattern.reshape(shape)._base is not whole


class Functionalizer(Interpreter):
    """Runs ops on values that are never written to.

    Parameters
    ----------
    copies : bool
        Whether views are copied, so that no value shows the memory of another one.
    """

    traces = computes = for_later = True        # values are the same as without this interpreter

    def __init__(self, copies=False):
        self.copies, self.recorded = copies, is_history_recorded()

    def lift(self, x):
        """The stand-in of a tensor, with a memory of its own."""
        return self.stand_in(x, Memory(x), (), x)

    def stand_in(self, x, memory, views, value=None, placed=False):
        """The stand-in of a value that shows a memory, with the strides and offset of x."""
        return counted_by(stands_for(x, Functional(self, memory, views, value, placed)), memory.counter)

    def arguments(self, leaves):
        """The stand-ins of arguments; a repeated tensor has one stand-in."""
        made, by_memory = {}, {}
        for x in leaves:
            if not isinstance(x, Tensor) or id(x) in made:
                continue
            s = made[id(x)] = self.lift(x)
            if x.numel() and (payload_of(x) is not None or not x.is_meta):
                # a stand-in has no memory: those that share it are views of one; kept alive, as ids are compared
                storage = x.untyped_storage() if payload_of(x) is None else x if x._base is None else x._base
                _, others = by_memory.setdefault(id(storage), (storage, []))
                others.append(carried_by(s, self).memory)
                for memory in others if len(others) > 1 else ():
                    memory.shared = True
        return [made[id(x)] if isinstance(x, Tensor) else x for x in leaves]

    def value(self, x):
        payload = carried_by(x, self)
        return x if payload is None else payload.tensor

    def created(self, kind, x):
        return self.lift(x)

    def call(self, op, args, out, variant):
        own = ops.row(op)
        if own.kind in ("composite", "custom"):
            return NotImplemented
        if op == WINDOW and carried_by(args[0], self) is not None:
            return self.window(*args[:4])
        values = tuple([self.values(x) for x in args])
        if variant == INPLACE:
            return self.write(op, args, values)
        if op == VIEW and not isinstance(args[1], dtype):       # the value may have other strides
            op = RESHAPE
            return self.view(op, args, values, run(op, values))
        if op == RESHAPE and copies(args[0], args[1]):
            return self.lift(run("clone", (run(op, values),)))
        result = run(op, values)
        if out is not None:
            return self.into(op, result, out)
        if own.kind == "view":
            return self.view(op, args, values, result)
        if result is values[0] and isinstance(result, Tensor):
            return args[0]
        return self.lifted(result)

    # -- custom functions --------------------------------------------------------------------------

    def custom_needs(self, args):
        """The arguments whose values have a history here or further out, where functionalizers are."""
        with outside():
            values = [self.value(x) if isinstance(x, Tensor) else x for x in args]
            needs = tuple([isinstance(x, Tensor) and x.requires_grad for x in values])
            top = innermost()
            more = () if top is None else top.custom_needs(values)
        needs = tuple([a or b for a, b in zip(needs, more)]) if more else needs
        return needs if any(needs) else ()

    def custom_ran(self, cls, ctx, args, output):
        """The stand-ins of the values with the history of the call. ``forward`` ran on stand-ins, so that its writes
        are new values. A context of its own has the values in place of the stand-ins."""
        single = not isinstance(output, (tuple, list))
        outputs = [output] if single else list(output)
        dirty = {id(t) for t in ctx._dirty}
        values = {}

        def value(x):
            if not isinstance(x, Tensor):
                return x
            if id(x) not in values:
                values[id(x)] = self.value(x)
            return values[id(x)]

        with outside():
            inputs, made, top = tuple([value(x) for x in args]), [], innermost()
            further = top is not None and bool(top.custom_needs(inputs))
            for x in outputs:           # values apart, which get the history; further out with memories of their own
                y = self.value(x).detach() if isinstance(x, Tensor) else x
                y = run("clone", (y,)) if further and isinstance(x, Tensor) else y
                made.append(y)
                values[id(x)] = y
            inner = copy(ctx)
            for name, x in vars(ctx).items():
                setattr(inner, name, value(x))
            for name in ("_saved", "_saved_for_forward", "_dirty", "_non_differentiable"):
                if name in vars(ctx):
                    setattr(inner, name, tuple([value(x) for x in getattr(ctx, name)]))
            inner._dirty = ()
            inner.needs_input_grad = tuple([isinstance(x, Tensor) and x.requires_grad for x in inputs])
            if further:
                before, made = made, list(top.custom_ran(cls, inner, inputs, tuple(made)))
                swapped = {id(x): y for x, y in zip(before, made)}
                inner._saved, inner._non_differentiable = [
                    tuple([swapped.get(id(x), x) for x in kept]) for kept in (inner._saved, inner._non_differentiable)]
            if any(inner.needs_input_grad):
                without = {id(x) for x in inner._non_differentiable}
                tracked = [y if isinstance(y, Tensor) and id(y) not in without and y.dtype.kind in "fc" else None
                           for y in made]
                cls._hung(inner, inputs, made, tracked, inner._saved, set())
            for k, (x, y) in enumerate(zip(outputs, made)):
                payload = carried_by(x, self) if isinstance(x, Tensor) else None
                if payload is None:
                    continue
                if id(x) in dirty:
                    payload.write(y)
                elif payload.steps or any(x is a for a in args):
                    outputs[k] = self.stand_in(y, payload.memory, payload.views, y, payload.placed)
                else:
                    payload.memory.value = payload._tensor = y
        if single:
            return outputs[0]
        return tuple(outputs) if isinstance(output, tuple) else outputs

    def values(self, x):
        if isinstance(x, Tensor):
            return self.value(x)
        return type(x)([self.values(y) for y in x]) if type(x) is tuple or type(x) is list else x

    def lifted(self, result):
        if isinstance(result, tuple):
            return tuple([self.lifted(r) for r in result])
        return self.lift(result) if isinstance(result, Tensor) else result

    def write(self, op, args, values):
        x = args[0]
        payload = carried_by(x, self)
        if payload is None:
            if any(carried_by(y, self) is not None for y in tree_flatten(args)[0] if isinstance(y, Tensor)):
                raise RuntimeError(f"{op_name(op)}_: a tensor from outside of the function is written to, which "
                                   "functionalize cannot see; make it an argument")
            run(op, values, True)
            return x
        result = run(op, values)
        if isinstance(result, tuple):
            raise RuntimeError(f"{op_name(op)}_: several results cannot be written")
        if result.dtype is not x.dtype or tuple(result.shape) != tuple(x.shape):
            with aside():                   # raises what the write itself raises, if it may not be
                run(op, tuple([tree_map(_pattern, v) for v in values]), True)
            result = result.to(x.dtype)
        payload.write(result)
        return x

    def into(self, op, result, out):
        single = not isinstance(out, (tuple, list))
        for place, r in zip((out,) if single else out, (result,) if single else result):
            payload = carried_by(place, self)
            if payload is None:
                raise RuntimeError(f"{op_name(op)}: out is a tensor from outside of the function, which functionalize "
                                   "cannot see; make it an argument")
            if tuple(r.shape) != tuple(place.shape):
                raise RuntimeError(f"{op_name(op)}: out must have shape {list(r.shape)} inside functionalize, got "
                                   f"{list(place.shape)}")
            if not can_cast(r.dtype, place.dtype):
                raise DTypeError(f"{op_name(op)}: result dtype {r.dtype.name} can't be cast to out's dtype "
                                 f"{place.dtype.name}")
            payload.write(r if r.dtype is place.dtype else r.to(place.dtype))
        return out

    def view(self, op, args, values, result):
        whole = carried_by(args[0], self)
        if whole is None:
            return result
        if result is values[0]:
            return args[0]
        places, start = result, None
        if self.copies:                 # the strides and the offset that the view would have in the memory
            with aside():
                pattern = _pattern(args[0])
                places, start = run(op, (pattern, *args[1:])), args[0].storage_offset() - pattern.storage_offset()
            if isinstance(places, Tensor) and places.is_complex() != pattern.is_complex():
                start = start // 2 if places.is_complex() else 2 * start
        if isinstance(result, tuple):
            return tuple([self.shown(whole, (op, args[1:], k), r, p, start)
                          for k, (r, p) in enumerate(zip(result, places))])
        place = Apart(whole.memory) if op == DETACHED[0] else None
        return self.shown(whole, (op, args[1:], place), result, places, start)

    def window(self, x, size, stride, offset):
        """The stand-in of a window over the memory of x, wherever in it x lies."""
        payload = carried_by(x, self)
        memory = payload.memory
        memory.unroll()
        line, views = memory.value, []
        if x.dtype is not line.dtype:
            if memory.low:
                raise RuntimeError("functionalize: as_strided of a part of a batch that is seen with another dtype")
            views = _seen_with(line, x.dtype)
        if any([step[0] == DETACHED[0] for step in payload.views]):
            views.append((DETACHED[0], (), Apart(memory)))
        for step in views:
            line = shown(step, line)
        last = WINDOW, (size, stride, offset - memory.low, line.stride(), 0), None
        value = shown(last, line)
        last = WINDOW, (tuple(value.shape), value.stride(), *last[1][2:]), None
        place = value if not memory.low else run(WINDOW, (memory.first, size, stride, offset, (), 0))
        return self.stand_in(place, memory, (*views, last), row_major(value) if self.copies else value, True)

    def shown(self, whole, step, value, place, start):
        """The stand-in of a view; ``place`` has its strides, and its offset from the place ``start`` on."""
        views, memory = (*whole.views, step), whole.memory
        lying = memory.first if memory.low else memory.value
        if start is not None and place.dtype is not lying.dtype and place.dtype.to_real() is lying.dtype.to_real():
            if place.is_complex():      # numbers in the place of pairs
                lying = view_as_complex(lying.as_strided((storage_places(lying) // 2, 2), (2, 1), 0))
            else:
                lying = view_as_real(lying)
        if start is None or place.dtype is not lying.dtype:
            return self.stand_in(value, memory, views, row_major(value) if self.copies else value, whole.placed)
        lying = lying.as_strided(place.shape, place.stride(), start + place.storage_offset())
        return self.stand_in(lying, memory, views, row_major(value), whole.placed)


def functionalize(func, *, remove="mutations"):
    """A function with the results and effects of ``func``, which writes to arguments only at its end.

    Tensors that ``func`` makes and writes to become new values. Arguments that it writes to are written at the end.
    With :func:`ptcore.fx.experimental.proxy_tensor.make_fx` this gives graphs in which each value is made once.

    Parameters
    ----------
    func : callable
        Takes and returns trees (nested tuples, lists, dictionaries) of tensors.
    remove : {"mutations", "mutations_and_views"}, default: "mutations"
        With the second word views are copied as well: then no value shows the memory of another one.

    Returns
    -------
    callable

    Raises
    ------
    RuntimeError
        If ``remove`` is another word, or a tensor is written to that is no argument and was not made inside.

    Examples
    --------
    >>> import ptcore
    >>> from ptcore.func import functionalize
    >>> from ptcore.fx.experimental.proxy_tensor import make_fx
    >>> def f(x):
    ...     y = x.clone()
    ...     y[0] = 7
    ...     return y
    >>> traced = make_fx(functionalize(f))(ptcore.ones(2))
    >>> [node.target.__name__ for node in traced.graph.nodes if node.op == "call_function"]
    ['clone', 'select', 'assign', 'overwritten']
    >>> traced(ptcore.zeros(2))
    tensor([7., 0.])
    """
    if remove not in ("mutations", "mutations_and_views"):
        raise RuntimeError(f"functionalize(f, remove='mutations'): received invalid argument for remove={remove}. "
                           "Valid options are 'mutations', which replaces writes in place by new values, and "
                           "'mutations_and_views', which copies views as well.")

    @functools.wraps(func, updated=())
    def wrapped(*args, **kwargs):
        flat, spec = tree_flatten((args, kwargs))
        functionalizer = Functionalizer(remove == "mutations_and_views")
        inside = functionalizer.arguments(flat)
        with functionalizer:
            given, named = tree_unflatten(inside, spec)
            result = func(*given, **named)
        result = tree_map(lambda x: functionalizer.value(x) if isinstance(x, Tensor) else x, result)
        given = {id(x): (x, s) for x, s in zip(flat, inside) if isinstance(x, Tensor)}     # each once
        for x, s in given.values():
            payload = carried_by(s, functionalizer)
            if payload is not None and payload.memory.version:
                payload.memory.copy_to(x)
                payload.memory.version = 0
            for op, rest, _ in () if payload is None else payload.views:    # of an argument: its dims were changed
                if op == WINDOW:
                    rest = (*rest[:2], rest[2] + payload.memory.low, x.stride(), x.storage_offset())
                run(op, (x, *rest), True)
        return result
    return wrapped
