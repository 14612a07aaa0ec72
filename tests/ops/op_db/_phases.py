"""One entry, all phases: each gives pairs of a label and what is wrong with it, None where nothing is.

Whatever torch raises for a sample ptcore must raise too, by the class or one derived from it.
"""
import contextlib
import itertools
import warnings
from functools import partial

import torch

import ptcore as pt

from . import _compare, _convert, _entries, _factors

QUICK = {"forward": 8, "layouts": 3, "gradient": 4, "out": 2, "meta": 4}      # samples of a phase where not all are tried
WIDE = {torch.float16: torch.float64, torch.bfloat16: torch.float64, torch.float32: torch.float64,
        torch.complex64: torch.complex128}
LOOSE = {torch.float32: (1e-4, 1e-4), torch.complex64: (1e-4, 1e-4), torch.float64: (1e-6, 1e-6),
         torch.complex128: (1e-6, 1e-6)}
UNINITIALISED = {"empty", "empty_like", "empty_strided", "empty_permuted", "new_empty", "new_empty_strided", "resize_",
                 "resize_as_"}
GRADIENT_DTYPES = (torch.float64, torch.complex128, torch.float32, torch.complex64, torch.bfloat16, torch.float16)
RANDOM_SEED = 42


class Raised:
    """A call that raised."""

    def __init__(self, error):
        self.error = error

    def __repr__(self):
        return f"{type(self.error).__name__}: {str(self.error)[:160]}"


def called(function, *args, **kwargs):
    """The result of a call from a fixed random state, or Raised."""
    try:
        torch.manual_seed(RANDOM_SEED)
        pt.manual_seed(RANDOM_SEED)
        return function(*args, **kwargs)
    except _convert.NotCarried:
        raise
    except Exception as e:
        return Raised(e)


def same_class(ours, theirs):
    """Whether an error of ours is caught where torch's is."""
    return isinstance(ours, type(theirs)) or (isinstance(theirs, NotImplementedError) and isinstance(ours, RuntimeError | TypeError))


class Walk:
    """All phases of one entry. ``limit`` is a factor for the numbers of samples, None for all of them."""

    def __init__(self, op, seed=0, quick=True):
        self.op, self.seed, self.quick = op, seed, quick
        self.ours, self.theirs = _entries.ours(op), _entries.theirs(op)
        self.notes = []             # strides that differ where torch promises none
        self.strict = type(op).__name__ in ("UnaryUfuncInfo", "BinaryUfuncInfo") or op.name.endswith("_like")

    # -- helpers -----------------------------------------------------------------------------------

    def drawn(self, found, phase):
        return itertools.islice(found, QUICK[phase]) if self.quick else found

    def tolerance(self, dtype):
        return _compare.tolerance(self.op, dtype)

    def random(self, call):
        """Whether torch's own result depends on the random state."""
        first = call()
        torch.manual_seed(RANDOM_SEED + 1)
        try:
            second = call(seeded=False)
        except Exception:
            return False
        a, b = _convert.leaves(first, torch.Tensor), _convert.leaves(second, torch.Tensor)
        return not all(x.shape == y.shape and torch.equal(torch.nan_to_num(x), torch.nan_to_num(y)) for x, y in zip(a, b))

    def tolerance_of(self, narrow):
        """The tolerance of a result that was computed in one dtype and is written in another."""
        return lambda dtype: max(self.tolerance(dtype), self.tolerance(narrow))

    def judged(self, ours, theirs, again=None, exact=None, views=False, arguments=None,
               tolerance=None):
        """None or what is wrong. ``again`` repeats torch's call, ``exact`` makes it with wider numbers."""
        if isinstance(theirs, Raised):
            if isinstance(ours, Raised):
                return None if same_class(ours.error, theirs.error) else f"raised {ours}, expected {theirs}"
            if isinstance(theirs.error, NotImplementedError) or "not implemented for" in str(theirs.error):
                return None         # a dtype that torch has no kernel for
            return f"no error, expected {theirs}"
        if any(x.dtype not in _convert.DTYPES for x in _convert.leaves(theirs, torch.Tensor)):
            raise _convert.NotCarried("another dtype")
        if isinstance(ours, Raised):
            return f"raised {ours}"
        tolerance = tolerance or self.tolerance
        strict = self.strict or views
        text = _compare.differ(ours, theirs, tolerance, strides=strict)
        if text is None:
            if not strict:
                note = _compare.differ(ours, theirs, tolerance, strides=True, values=False)
                if note:
                    self.notes.append(note)
            return None
        if self.op.name in UNINITIALISED or _compare.differ(ours, theirs, tolerance, strides=strict, values=False):
            return _compare.differ(ours, theirs, tolerance, strides=strict, values=False)
        if again is not None and self.random(again):
            return None
        if arguments is not None and self.free_choice(ours, theirs, arguments):
            return None
        if exact is not None:
            try:
                wide = exact()
            except Exception:
                return text
            if self.no_worse(ours, theirs, wide):
                return None
        return text

    def free_choice(self, ours, theirs, arguments):
        """Whether the results agree in all that the op's documentation does not leave open."""
        if isinstance(ours, (tuple, list)):
            carried = [_convert.array(x) for x in ours]
        else:
            carried = _convert.array(ours)
        args, kwargs = arguments
        if self.op.name == "argsort":
            a, b = (_factors.order(args, r, kwargs) for r in (carried, theirs))
        elif self.op.name in _factors.FREE and (self.op.name not in _factors.POSITIONS or isinstance(theirs, tuple)):
            a, b = (_factors.FREE[self.op.name](args, r) for r in (carried, theirs))
        else:
            return False
        return all(x.shape == y.shape and x.dtype == y.dtype and _compare.close(
            x, y, max(self.tolerance(y.dtype), LOOSE.get(y.dtype, (0, 0)))) for x, y in zip(a, b))

    def no_worse(self, ours, theirs, wide):
        """Whether our error, of the result with wider numbers, is at most torch's, or within the tolerance of it."""
        for a, b, c in zip(_convert.leaves(ours, pt.Tensor), _convert.leaves(theirs, torch.Tensor),
                           _convert.leaves(wide, torch.Tensor)):
            if b.dtype not in WIDE or a.shape != c.shape:
                if not _compare.close(_convert.array(a), b, self.tolerance(b.dtype)):
                    return False
                continue
            (rtol, atol), largest = _compare.DEFAULT[b.dtype], torch.finfo(b.dtype).max
            a, b, c = (x.detach().resolve_conj().to(WIDE[b.dtype]) for x in (_convert.array(a), b, c))
            finite = c.abs() <= largest
            if not torch.equal(torch.isnan(a), torch.isnan(c)):
                return False
            gap, bound = (a - c).abs()[finite], (b - c).abs()[finite]
            if gap.numel() and not bool((torch.nan_to_num(gap) <= 1.1 * torch.nan_to_num(bound).max()
                                         + atol + rtol * c.abs()[finite]).all()):
                return False
        return True

    def widened(self, sample, dtype):
        """The arguments of a sample with wider numbers."""
        if dtype not in WIDE:
            return None
        return _convert.mapped(sample, lambda x: x.detach().to(
            WIDE[x.dtype] if x.dtype in WIDE else x.dtype))

    def both(self, function, theirs, arguments, views=False, dtype=None, wide=True):
        """What is wrong with a call; ``arguments`` are torch's."""
        args, kwargs = arguments
        mine = _convert.ours([list(args), kwargs])
        # Some of the database's functions write to their input.
        fresh = lambda: _convert.mapped((list(args), kwargs), keeping)
        first = fresh()
        expected = called(theirs, *first[0], **first[1])
        got = called(function, *mine[0], **mine[1])

        def again(seeded=True):
            once = fresh()
            return (called if seeded else plain)(theirs, *once[0], **once[1])
        exact = None
        if wide and dtype in WIDE and "dtype" not in kwargs:
            other = self.widened((list(args), kwargs), dtype)
            exact = lambda: theirs(*other[0], **other[1])
        return self.judged(got, expected, again, exact, views, (args, kwargs))

    # -- phases ------------------------------------------------------------------------------------

    def forward(self):
        for dtype in _entries.dtypes(self.op):
            found = _entries.samples(self.op, dtype, False, self.seed)
            found = self.drawn(found, "forward") if self.quick else itertools.chain(
                found, _entries.samples(self.op, dtype, False, self.seed, reference=True))
            for i, sample in enumerate(found):
                yield f"{dtype} {i} {sample.summary()}", partial(
                    self.both, self.ours, self.theirs, ((sample.input, *sample.args), sample.kwargs), self.views, dtype)

    @property
    def views(self):
        return self.op.name in VIEWS

    def of_variant(self, theirs, inplace=False):
        """A method, an operator or an in-place form over the samples."""
        mine = _entries.variant(theirs)
        if mine is None:
            yield "absent", lambda: f"no {getattr(theirs, '__name__', theirs)}"
            return
        operator_form = getattr(theirs, "__module__", "") in ("_operator", "operator")
        for dtype in _entries.dtypes(self.op):
            for i, sample in enumerate(self.drawn(_entries.samples(self.op, dtype, False, self.seed), "forward")):
                if not isinstance(sample.input, torch.Tensor) or (operator_form and (sample.kwargs or len(sample.args) > 1)):
                    continue

                yield f"{dtype} {i} {sample.summary()}", partial(
                    self.in_place, mine, theirs, sample, dtype) if inplace else partial(
                    self.both, mine, theirs, ((sample.input, *sample.args), sample.kwargs), self.views, dtype)

    def in_place(self, mine, theirs, sample, dtype):
        args = _convert.ours([sample.input, *sample.args])
        kwargs = _convert.ours(sample.kwargs)
        x = args[0]
        fresh = _convert.mapped([sample.input, *sample.args], lambda t: t.detach().clone())
        expected = called(theirs, *fresh, **sample.kwargs)
        got = called(mine, *args, **kwargs)
        if not isinstance(expected, Raised) and not isinstance(got, Raised) and isinstance(got, pt.Tensor) and (
                expected is fresh[0]) and got is not x:
            return "another tensor is returned"

        def again(seeded=True):
            other = _convert.mapped([sample.input, *sample.args], lambda t: t.detach().clone())
            return (called if seeded else plain)(theirs, *other, **sample.kwargs)

        def exact():
            other = self.widened(([sample.input, *sample.args], sample.kwargs), dtype)
            return theirs(*_convert.mapped(other[0], torch.clone), **other[1])
        return self.judged(got, expected, again, exact if dtype in WIDE else None)

    def method(self):
        if self.op.method_variant is not None:
            yield from self.of_variant(self.op.method_variant)

    def operator(self):
        if self.op.operator_variant is not None:
            yield from self.of_variant(self.op.operator_variant)

    def inplace(self):
        if self.op.inplace_variant is not None:
            yield from self.of_variant(self.op.inplace_variant, inplace=True)
        if getattr(self.op, "inplace_operator_variant", None) is not None:
            yield from self.of_variant(self.op.inplace_operator_variant, inplace=True)

    def out(self):
        if not self.op.supports_out:
            return
        for dtype in _entries.dtypes(self.op):
            for i, sample in enumerate(self.drawn(_entries.samples(self.op, dtype, False, self.seed), "out")):
                arguments = (sample.input, *sample.args), sample.kwargs
                with quiet():
                    expected = called(self.theirs, *arguments[0], **arguments[1])
                parts = _convert.leaves(expected, torch.Tensor)
                if isinstance(expected, Raised) or not parts:
                    continue
                for name, made in self.outs(expected):
                    yield f"{dtype} {i} {name} {sample.summary()}", partial(self.with_out, made, arguments, dtype)

    def outs(self, expected):
        """Tensors to write to: as the result is, with other strides, of another shape, of another dtype."""
        yield "same", _convert.mapped(expected, torch.empty_like)
        yield "strided", _convert.mapped(expected, lambda x: torch.empty(
            (*x.shape[::-1], 2), dtype=x.dtype)[..., 0].permute(tuple(reversed(range(x.dim())))))
        yield "shape", _convert.mapped(expected, lambda x: torch.empty((*x.shape, 2), dtype=x.dtype))
        yield "empty", _convert.mapped(expected, lambda x: torch.empty(0, dtype=x.dtype))
        for dtype in (torch.int64, torch.float64, torch.complex128):
            yield str(dtype), _convert.mapped(expected, partial(torch.empty_like, dtype=dtype))

    def with_out(self, made, arguments, dtype):
        args, kwargs = arguments
        theirs, mine_out = made, _convert.ours(made)
        expected = called(self.theirs, *args, **kwargs, out=theirs)
        got = called(self.ours, *_convert.ours(list(args)), **_convert.ours(kwargs), out=mine_out)
        if not isinstance(got, Raised) and not isinstance(expected, Raised):
            wrote, given = _convert.leaves(got, pt.Tensor), _convert.leaves(mine_out, pt.Tensor)
            if any(a is not b for a, b in zip(wrote, given)):
                return "another tensor is returned"
            got, expected = mine_out, theirs
            for a, b in zip(given, _convert.leaves(theirs, torch.Tensor)) if self.strict else ():
                if tuple(a.shape) == tuple(b.shape) and not _compare.same_strides(a, b):
                    return f"strides of out {a.stride()}, expected {b.stride()}"

        def again(seeded=True):
            return (called if seeded else plain)(self.theirs, *args, **kwargs)

        def exact():
            other = self.widened((list(args), kwargs), dtype)
            return self.theirs(*other[0], **other[1])
        return self.judged(got, expected, again, exact if dtype in WIDE and "dtype" not in kwargs else None,
                           arguments=arguments, tolerance=self.tolerance_of(dtype))

    def layouts(self):
        """Non-contiguous, expanded and conjugated arguments."""
        for dtype in _entries.dtypes(self.op):
            for i, sample in enumerate(self.drawn(_entries.samples(self.op, dtype, False, self.seed), "layouts")):
                for name, change in (("noncontiguous", None), ("expanded", expanded), ("conjugated", torch.conj)):
                    if name == "conjugated" and not dtype.is_complex:
                        continue
                    with quiet():
                        other = sample.noncontiguous() if change is None else sample.transform(partial(of_tensor, change))
                    yield f"{dtype} {i} {name} {sample.summary()}", partial(
                        self.both, self.ours, self.theirs, ((other.input, *other.args), other.kwargs), self.views, dtype)

    def meta(self):
        for dtype in _entries.dtypes(self.op):
            for i, sample in enumerate(self.drawn(_entries.samples(self.op, dtype, False, self.seed), "meta")):
                yield f"{dtype} {i} {sample.summary()}", partial(self.on_meta, sample)

    def on_meta(self, sample):
        def moved(x):
            return _convert.mapped(x, lambda t: torch.empty_strided(
                t.shape, t.stride(), dtype=t.dtype, device="meta"))
        args, kwargs = list(moved((sample.input, *sample.args))), moved(sample.kwargs)
        if "device" in kwargs:
            kwargs["device"] = "meta"
        theirs = called(self.theirs, *args, **kwargs)
        got = called(self.ours, *_convert.ours(args), **_convert.ours(kwargs))
        if isinstance(theirs, Raised):
            return None             # also of ops whose result depends on the elements
        if isinstance(got, Raised):
            return f"raised {got}"
        real = called(self.ours, *_convert.ours([sample.input, *sample.args]), **_convert.ours(sample.kwargs))
        if isinstance(real, Raised):
            return None             # forward says so
        for a, b in zip(_convert.leaves(got, pt.Tensor), _convert.leaves(real, pt.Tensor)):
            if a.device.type != "meta" and any(t.device.type == "meta" for t in _convert.leaves([args, kwargs], torch.Tensor)):
                return f"result on {a.device}"
            if (tuple(a.shape), a.dtype, a.stride()) != (tuple(b.shape), b.dtype, b.stride()):
                return f"meta {tuple(a.shape)} {a.dtype} {a.stride()}, real {tuple(b.shape)} {b.dtype} {b.stride()}"
        return None

    def backward(self):
        yield from self.gradients(1)

    def second(self):
        if self.op.supports_gradgrad:
            yield from self.gradients(2)

    def gradients(self, order):
        if not self.op.supports_autograd:
            return
        supported = self.op.supported_backward_dtypes("cpu")
        for dtype in GRADIENT_DTYPES[:2] if order == 2 else GRADIENT_DTYPES:
            if dtype not in supported or dtype not in _entries.dtypes(self.op):
                continue
            found = _entries.samples(self.op, dtype, True, self.seed)
            for i, sample in enumerate(self.drawn(found, "gradient")):
                yield f"{dtype} {i} {sample.summary()}", partial(self.gradient, sample, dtype, order)

    def gradient(self, sample, dtype, order):
        def fresh(x):
            return x.detach().clone(memory_format=torch.preserve_format).requires_grad_(x.requires_grad)
        args, kwargs = _convert.mapped(((sample.input, *sample.args), sample.kwargs), fresh)
        memo = {}
        mine, mine_kwargs = _convert.ours(list(args), memo), _convert.ours(kwargs, memo)
        process = sample.output_process_fn_grad
        given = Cotangents()
        theirs = called(derived, torch, self.theirs, args, kwargs, process, order, given.draw)
        if isinstance(theirs, Raised):
            return None             # the forward phase compares errors; a gradient that torch refuses is no oracle
        if theirs is None:
            return None
        got = called(derived, pt, self.ours, mine, mine_kwargs, _convert.rebound(process), order, given.ours)
        if isinstance(got, Raised):
            return f"raised {got}"
        if got is None:
            return "no output requires grad"
        if len(got) < len(theirs) and any(x is not None and bool(x.any()) for x in theirs[-1]):
            return "no gradient requires grad"

        def again(seeded=True):
            return (called if seeded else plain)(self.theirs, *args, **kwargs)

        for i, (level, expected) in enumerate(zip(got, theirs)):
            for j, (a, b) in enumerate(zip(level, expected)):
                text = self.gradient_differs(a, b, dtype)
                if text and (self.random(again) or self.ties(a, b, dtype)):
                    return None
                if text and dtype in WIDE:
                    wide_args, wide_kwargs = _convert.mapped((args, kwargs), lambda x: x.detach().to(
                        WIDE.get(x.dtype, x.dtype)).requires_grad_(x.requires_grad))
                    wide = called(derived, torch, self.theirs, wide_args, wide_kwargs, process, order, given.wide)
                    if not isinstance(wide, Raised) and self.no_worse(a, b, wide[i][j]):
                        continue
                if text:
                    return f"{('first', 'second')[i]} derivative by input {j}: {text}"
        return None

    def ties(self, a, b, dtype):
        """Whether the gradients went to other places among equal elements, of which short numbers have many."""
        return (self.op.name in (*_factors.POSITIONS, "msort") and dtype in (torch.float16, torch.bfloat16)
                and a is not None and b is not None and a.shape == b.shape
                and torch.equal(_convert.array(a).flatten().sort()[0], b.detach().flatten().sort()[0]))

    def gradient_differs(self, a, b, dtype):
        if b is None and a is None:
            return None
        if a is None:
            return None if not b.any() else "None, expected a gradient"
        if b is None:
            return None if not _convert.array(a).any() else "a gradient, expected None"
        rtol, atol = self.tolerance(dtype)
        scale = float(b.detach().abs().max()) if b.numel() else 0
        return _compare.differ(a, b, (max(rtol, 1e-6), max(atol, 1e-7 * (1 + scale)) if dtype in GRADIENT_DTYPES[:2] else max(
            atol, rtol * scale)))

    def errors(self):
        if self.op.error_inputs_func is None:
            return
        for i, wrong in enumerate(self.op.error_inputs("cpu")):
            yield f"{i} {wrong.sample_input.summary()}", partial(self.error, wrong)

    def error(self, wrong):
        sample, expected = wrong.sample_input, f"{wrong.error_type.__name__}: {wrong.error_regex}"
        args, kwargs = _convert.ours([[sample.input, *sample.args], sample.kwargs])
        got = called(self.ours, *args, **kwargs)
        if not isinstance(got, Raised):
            return f"no error, expected {expected}"
        return None if isinstance(got.error, wrong.error_type) else f"raised {got}, expected {expected}"


VIEWS = {"T", "H", "mT", "mH", "expand", "expand_as", "view", "view_as", "transpose", "permute", "diagonal", "narrow",
         "select", "split", "chunk", "tensor_split", "hsplit", "vsplit", "dsplit", "unbind", "unfold", "squeeze", "unsqueeze",
         "movedim", "swapaxes", "swapdims", "real", "imag", "view_as_real", "view_as_complex", "as_strided", "detach",
         "t", "adjoint", "broadcast_to", "split_with_sizes", "linalg.diagonal"}
PHASES = ("forward", "method", "operator", "inplace", "out", "layouts", "meta", "backward", "second", "errors")


def keeping(x):
    """A copy of a tensor, and of all the memory that it is a part of."""
    if x.device.type == "meta":
        return x
    whole = torch.as_strided(x.detach(), (x.untyped_storage().nbytes() // x.element_size(),), (1,), 0).clone()
    return torch.as_strided(whole, x.shape, x.stride(), x.storage_offset()).detach()


def plain(function, *args, **kwargs):
    return function(*args, **kwargs)


def of_tensor(change, x):
    return change(x) if isinstance(x, torch.Tensor) else x


def expanded(x):
    """The first row for all of them, by a stride of 0."""
    return x[:1].expand_as(x) if x.dim() and x.shape[0] else x


@contextlib.contextmanager
def quiet():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def derived(xp, function, args, kwargs, process, order, cotangent):
    """The gradients of each order, or None where nothing requires grad. ``cotangent(level, k, x)`` gives that of the
    k-th tensor of the results; of a result that does not depend on the inputs in one of the libraries it is 0."""
    inputs = [x for x in _convert.leaves([args, kwargs], xp.Tensor) if x.requires_grad]
    if not inputs:
        return None
    results = _convert.leaves(process(function(*args, **kwargs)), xp.Tensor)
    levels = []
    for level in range(order):
        outputs = [(x, cotangent(level, k, x)) for k, x in enumerate(results) if x is not None and x.requires_grad]
        if not outputs:
            return levels or None
        levels.append(xp.autograd.grad([x for x, _ in outputs], inputs, [g for _, g in outputs], allow_unused=True,
                                       create_graph=level + 1 < order))
        results = list(levels[-1])
    return levels


class Cotangents:
    """Those that torch's run drew, for the same results of ours."""

    def __init__(self):
        self.drawn, self.generator = {}, torch.Generator().manual_seed(7)

    def draw(self, level, k, x):
        g = torch.randn(x.shape, dtype=torch.float64, generator=self.generator)
        if x.is_complex():
            g = torch.complex(g, torch.randn(x.shape, dtype=torch.float64, generator=self.generator))
        self.drawn[level, k] = g.to(x.dtype)
        return self.drawn[level, k]

    def wide(self, level, k, x):
        return self.drawn[level, k].to(x.dtype)

    def ours(self, level, k, x):
        g = self.drawn.get((level, k))
        return pt.zeros_like(x) if g is None else _convert.tensor(g)


def walk(op, seed=0, quick=True, phases=PHASES):
    """{phase: [tried, [what is wrong]]} of an entry, and the strides that differ where torch promises none."""
    state = Walk(op, seed, quick)
    found = {}
    if state.ours is None:
        return {"forward": [1, ["absent"]]}, []
    for phase in phases:
        tried, wrong = 0, []
        checks = getattr(state, phase)()
        while True:
            with quiet():
                try:
                    label, check = next(checks)
                except StopIteration:
                    break
                except Exception as e:
                    wrong.append(f"samples: {type(e).__name__}: {e}")
                    break
                try:
                    text = check()
                except _convert.NotCarried:
                    continue
                except Exception as e:
                    text = f"the comparison failed: {type(e).__name__}: {e}"
            tried += 1
            if text:
                wrong.append(f"{text} | {label}")
        if tried or wrong:
            found[phase] = [tried, wrong]
    return found, state.notes
