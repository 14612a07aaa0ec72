"""One entry, all phases: each gives pairs of a label and what is wrong with it, None where nothing is.

Whatever torch raises for a sample ptcore must raise too, by the class or one derived from it.
"""
import contextlib
import itertools
import re
import warnings
from functools import partial

import numpy as np
import torch

import ptcore as pt

from . import _compare, _convert, _differences, _entries, _factors, _references

# How many samples a phase tries where not all are: of each dtype, and in the slice that CI walks.
QUICK = {"forward": 8, "layouts": 3, "gradient": 4, "out": 2, "meta": 4}
FEW = {"forward": 3, "layouts": 1, "gradient": 2, "out": 1, "meta": 1}
WIDE = {torch.float16: torch.float64, torch.bfloat16: torch.float64, torch.float32: torch.float64,
        torch.complex64: torch.complex128}
LOOSE = {torch.float32: (1e-4, 1e-4), torch.complex64: (1e-4, 1e-4), torch.float64: (1e-6, 1e-6),
         torch.complex128: (1e-6, 1e-6)}
# Of differences of float64: beside those of the dtype in which a gradient was computed.
SLOPES = {torch.float64: 1e-5, torch.complex128: 1e-5, torch.float32: 1e-3, torch.complex64: 1e-3, torch.float16: 2e-2,
          torch.bfloat16: 1e-1}
UNINITIALISED = {"empty", "empty_like", "empty_strided", "empty_permuted", "new_empty", "new_empty_strided", "resize_",
                 "resize_as_"}
GRADIENT_DTYPES = (torch.float64, torch.complex128, torch.float32, torch.complex64, torch.bfloat16, torch.float16)
RANDOM_SEED = 42
# torch's kernels for these write row-major results, where others of the same file keep strides, and its conj is a view.
ANY_STRIDES = {"angle", "conj", "nn.functional.logsigmoid", "nn.functional.rrelu"}
# torch writes beyond an out= of these that is not dense, and dies of it.
DENSE_OUT = {"linalg.lu", "lu_unpack", "tril", "triu"}


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
    if isinstance(theirs, torch.linalg.LinAlgError):
        return isinstance(ours, pt.linalg.LinAlgError)
    return isinstance(ours, type(theirs)) or (isinstance(theirs, NotImplementedError) and isinstance(ours, RuntimeError | TypeError))


def holds_narrow(arguments):
    """Whether a tensor among the arguments has a wider dtype to compute in."""
    return any(x.dtype in WIDE for x in _convert.leaves(list(arguments), torch.Tensor))


class Walk:
    """All phases of one entry. ``quick``: the first samples; ``few``: of two dtypes, gradients in double precision."""

    def __init__(self, op, seed=0, quick=True, few=False):
        self.op, self.seed, self.quick, self.few = op, seed, quick, few
        self.dtypes = _entries.dtypes(op, few)
        self.ours, self.theirs = _entries.ours(op), _entries.theirs(op)
        self.notes = []             # strides that differ where torch promises none
        self.strict = self.elementwise = type(op).__name__ in ("UnaryUfuncInfo", "BinaryUfuncInfo")
        self.strict = (self.elementwise or op.name.endswith("_like")) and not (
            op.name in ANY_STRIDES or op.name.startswith("__r"))

    # -- helpers -----------------------------------------------------------------------------------

    def drawn(self, found, phase):
        return itertools.islice(found, (FEW if self.few else QUICK)[phase]) if self.quick else found

    def tolerance(self, dtype):
        return _compare.tolerance(self.op, dtype)

    def random(self, call):
        """Whether torch's own result depends on the random state."""
        first = _convert.leaves(call(), torch.Tensor)
        draws = 32 if sum(x.numel() for x in first) < 64 else 3     # of few elements some may agree by chance
        for seed in range(RANDOM_SEED + 1, RANDOM_SEED + 1 + draws):
            torch.manual_seed(seed)
            try:
                second = _convert.leaves(call(seeded=False), torch.Tensor)
            except Exception:
                return False
            if not all(x.shape == y.shape and torch.allclose(x.detach(), y.detach(), 0, 0, equal_nan=True)
                       for x, y in zip(first, second)):
                return True
        return False

    def tolerance_of(self, narrow):
        """The tolerance of a result that was computed in one dtype and is written in another."""
        return lambda dtype: max(self.tolerance(dtype), self.tolerance(narrow))

    def judged(self, ours, theirs, again=None, exact=None, views=False, arguments=None,
               tolerance=None, narrow=None):
        """None or what is wrong. ``again`` repeats torch's call, ``exact`` makes it with wider numbers; ``narrow`` is the
        dtype that both computed in, where it is not the result's."""
        if isinstance(theirs, Raised):
            if isinstance(ours, Raised):
                return None if same_class(ours.error, theirs.error) else f"raised {ours}, expected {theirs}"
            if isinstance(theirs.error, NotImplementedError) or any(
                    words in str(theirs.error) for words in ("not implemented for", "Unsupported dtype")):
                return None         # a dtype that torch has no kernel for
            return f"no error, expected {theirs}"
        if any(x.dtype not in _convert.DTYPES for x in _convert.leaves(theirs, torch.Tensor)):
            raise _convert.NotCarried("another dtype")
        if isinstance(ours, Raised):
            if "refers to a single memory location" in str(ours.error):
                return None         # torch writes to elements that overlap, in no order
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
            if self.no_worse(ours, theirs, wide, narrow):
                return None
        if self.elementwise and arguments is not None and self.by_reference(ours, theirs, *arguments):
            return None
        return text

    def by_reference(self, ours, theirs, args, kwargs):
        """Whether each element is torch's or that of the function of NumPy or SciPy that torch's own tests compare with.
        Where they leave numbers of a kind out, for a dtype or its wider twin, NaN and infinity are not compared."""
        reference = self.op.ref or _references.OF.get(self.op.name)
        if not isinstance(theirs, torch.Tensor) or reference is None:
            return False
        asked = {theirs.dtype, *(x.dtype for x in _convert.leaves([args, kwargs], torch.Tensor))}
        asked |= {WIDE.get(dtype, dtype) for dtype in asked}
        skipped = any(getattr(d, "test_name", None) and "reference_numerics" in d.test_name
                      and (d.dtypes is None or asked & set(d.dtypes)) for d in self.op.decorators)

        def plain_of(x):
            return (x.to(WIDE.get(x.dtype, x.dtype)) if x.dtype in (torch.float16, torch.bfloat16) else x).detach().resolve_conj().numpy()
        try:
            with np.errstate(all="ignore"), warnings.catch_warnings():
                warnings.simplefilter("ignore")
                found = reference(*_convert.mapped((list(args), kwargs), plain_of)[0],
                                  **_convert.mapped((list(args), kwargs), plain_of)[1])
            found = torch.as_tensor(np.asarray(found)).to(theirs.dtype)
        except Exception:
            return False
        a = _convert.array(ours)
        if found.shape != a.shape:
            return False
        right = self.elements_close(a, theirs) | self.elements_close(a, found)
        if self.op.name.startswith("special."):     # where both leave their range on the way to a limit
            right |= torch.isnan(theirs) & torch.isnan(found) & (torch.isinf(a) | (a == 0))
        if skipped and (theirs.is_floating_point() or theirs.is_complex()):
            right |= ~(torch.isfinite(theirs) & torch.isfinite(found) & torch.isfinite(a))
        return bool(right.all())

    def elements_close(self, a, b):
        if not (b.is_floating_point() or b.is_complex()):
            return a == b
        rtol, atol = self.tolerance(b.dtype)
        if b.is_complex():              # part by part: of an infinite number the other part counts as well
            a, b = torch.view_as_real(a.resolve_conj()), torch.view_as_real(b.resolve_conj())
            return torch.isclose(a, b, rtol, atol, equal_nan=True).all(-1)
        return torch.isclose(a, b, rtol, atol, equal_nan=True)

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

    def no_worse(self, ours, theirs, wide, narrow=None, gradient=False):
        """Whether our error, of the result with wider numbers, is at most torch's, or within the tolerance of it. An
        error in a gradient is one of all its elements, as they are sums of the same numbers."""
        for a, b, c in zip(_convert.leaves(ours, pt.Tensor), _convert.leaves(theirs, torch.Tensor),
                           _convert.leaves(wide, torch.Tensor)):
            dtype = narrow if narrow in WIDE and (b.is_floating_point() or b.is_complex()) else b.dtype
            if dtype not in WIDE or a.shape != c.shape:
                if not _compare.close(_convert.array(a), b, self.tolerance(b.dtype)):
                    return False
                continue
            (rtol, atol), largest = _compare.DEFAULT[dtype], torch.finfo(dtype).max
            computed = torch.complex128 if b.is_complex() else torch.float64
            a, b, c = (x.detach().resolve_conj().to(computed) for x in (_convert.array(a), b, c))
            finite = c.abs() <= largest
            if not torch.equal(torch.isnan(a), torch.isnan(c)):
                return False
            gap, bound = (a - c).abs()[finite], (b - c).abs()[finite]
            size = c.abs()[finite]
            size = size.max() if gradient and gap.numel() else size
            if gap.numel() and not bool((torch.nan_to_num(gap) <= 1.1 * torch.nan_to_num(bound).max()
                                         + atol + rtol * size).all()):
                return False
        return True

    def at_poles(self, args, kwargs, exact):
        """What torch's double precision gives, with the values at poles, near which it sums up large numbers."""
        if self.op.name in ("polygamma", "special.polygamma"):
            x = next(a for a in (*args, *kwargs.values()) if isinstance(a, torch.Tensor))
            exact = exact.masked_fill((x <= 0) & (x == x.floor()), float("inf"))
        return exact

    def widens(self, dtype, arguments, kwargs):
        """Whether a call can be made with wider numbers: integers of an elementwise op are computed in the default dtype."""
        whole = self.elementwise or self.op.name.startswith("fft.")
        return "dtype" not in kwargs and (dtype in WIDE or holds_narrow(arguments)
                                          or (whole and dtype not in GRADIENT_DTYPES))

    def widened(self, sample, dtype):
        """The arguments of a sample with wider numbers."""
        whole = {} if dtype in WIDE else {dtype: torch.float64}
        return _convert.mapped(sample, lambda x: x.detach().to({**WIDE, **whole}.get(x.dtype, x.dtype)))

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
        if wide and self.widens(dtype, (args, kwargs), kwargs):
            other = self.widened((list(args), kwargs), dtype)
            exact = lambda: self.at_poles(other[0], other[1], theirs(*other[0], **other[1]))
        narrow = torch.float32 if dtype not in WIDE and holds_narrow((args, kwargs)) else None
        return self.judged(got, expected, again, exact, views, (args, kwargs), narrow=narrow)

    # -- phases ------------------------------------------------------------------------------------

    def forward(self):
        for dtype in self.dtypes:
            found = _entries.samples(self.op, dtype, False, self.seed)
            found = self.drawn(found, "forward") if self.quick or self.op.name.startswith("__r") else itertools.chain(
                found, _entries.samples(self.op, dtype, False, self.seed, reference=True))
            for i, sample in enumerate(found):
                if self.op.name.startswith("__r") and not isinstance(sample.input, torch.Tensor):
                    continue            # Python calls these of tensors
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
        if _entries.of_test(theirs):
            theirs = _convert.rebound(theirs, torch)
        operator_form = getattr(theirs, "__module__", "") in ("_operator", "operator")
        for dtype in self.dtypes:
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
        fresh = _convert.mapped([sample.input, *sample.args], keeping)
        expected = called(theirs, *fresh, **sample.kwargs)
        got = called(mine, *args, **kwargs)
        if not isinstance(expected, Raised) and not isinstance(got, Raised) and isinstance(got, pt.Tensor) and (
                expected is fresh[0]) and got is not x:
            return "another tensor is returned"

        def again(seeded=True):
            other = _convert.mapped([sample.input, *sample.args], keeping)
            return (called if seeded else plain)(theirs, *other, **sample.kwargs)

        def exact():
            other = self.widened(([sample.input, *sample.args], sample.kwargs), dtype)
            return self.at_poles(other[0], other[1], theirs(*_convert.mapped(other[0], torch.clone), **other[1]))
        wide = self.widens(dtype, (sample.args, sample.kwargs), sample.kwargs)
        return self.judged(got, expected, again, exact if wide else None)

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
        for dtype in self.dtypes:
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
        if self.op.name not in DENSE_OUT:
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

        if isinstance(expected, Raised) and re.search("INTERNAL ASSERT|Found dtype|expected scalar_type", str(expected.error)):
            return None                 # of a kernel that was handed a dtype which the check before it lets pass

        def again(seeded=True):
            return (called if seeded else plain)(self.theirs, *args, **kwargs)

        def exact():
            other = self.widened((list(args), kwargs), dtype)
            return self.at_poles(other[0], other[1], self.theirs(*other[0], **other[1]))
        text = self.judged(got, expected, again, exact if self.widens(dtype, (args, kwargs), kwargs) else None, arguments=arguments,
                           tolerance=self.tolerance_of(dtype), narrow=dtype if dtype in WIDE else torch.float32)
        # Some of torch's kernels take no notice of the strides of out=.
        return text and self.judged(got, called(self.theirs, *args, **kwargs)) and text

    def layouts(self):
        """Non-contiguous, expanded and conjugated arguments."""
        for dtype in self.dtypes:
            for i, sample in enumerate(self.drawn(_entries.samples(self.op, dtype, False, self.seed), "layouts")):
                for name, change in (("noncontiguous", None), ("expanded", self.expanded), ("conjugated", torch.conj)):
                    if name == "conjugated" and not dtype.is_complex:
                        continue
                    with quiet():
                        other = sample.noncontiguous() if change is None else sample.transform(partial(of_tensor, change))
                    yield f"{dtype} {i} {name} {sample.summary()}", partial(
                        self.of_layout, ((other.input, *other.args), other.kwargs), dtype)

    def of_layout(self, arguments, dtype):
        text = self.both(self.ours, self.theirs, arguments, self.views, dtype)
        # Some of torch's kernels read expanded memory as if it were dense.
        if not text:
            return None
        args, kwargs = _convert.ours([list(arguments[0]), arguments[1]])
        dense = _convert.mapped((list(arguments[0]), arguments[1]), torch.clone)
        return self.judged(called(self.ours, *args, **kwargs), called(self.theirs, *dense[0], **dense[1])) and text

    def expanded(self, x):
        """The first row for all of them, by a stride of 0; of matrices that must not be singular, the first of a batch."""
        least = 3 if self.op.name.startswith("linalg.") or self.op.name in MATRICES else 1
        if self.op.name in ("linalg.tensorinv", "linalg.tensorsolve"):
            return x            # the first dim is one of a matrix
        return x[:1].expand_as(x) if x.dim() >= least and x.shape[0] else x

    def meta(self):
        for dtype in self.dtypes:
            for i, sample in enumerate(self.drawn(_entries.samples(self.op, dtype, False, self.seed), "meta")):
                yield f"{dtype} {i} {sample.summary()}", partial(self.on_meta, sample)

    def on_meta(self, sample):
        def moved(x):
            return _convert.mapped(x, lambda t: torch.empty(
                t.untyped_storage().nbytes() // t.element_size(), dtype=t.dtype, device="meta").as_strided(
                t.shape, t.stride(), t.storage_offset()))
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
        for dtype in GRADIENT_DTYPES[:2] if order == 2 or self.few else GRADIENT_DTYPES:
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
        given = Cotangents(self.op.name in HERMITIAN)
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
                if text and holds_narrow((args, kwargs)):
                    wide_args, wide_kwargs = _convert.mapped((args, kwargs), lambda x: x.detach().to(
                        WIDE.get(x.dtype, x.dtype)).requires_grad_(x.requires_grad))
                    wide = called(derived, torch, self.theirs, wide_args, wide_kwargs, process, order, given.wide)
                    if not isinstance(wide, Raised) and self.no_worse(
                            a, b, wide[i][j], dtype if dtype in WIDE else torch.float32, gradient=True):
                        continue
                if text and self.undefined(order, a, b):
                    continue
                if text and self.by_differences(sample, args, kwargs, given, i, j, a, b):
                    continue
                if text:
                    return f"{('first', 'second')[i]} derivative by input {j}: {text}"
        return None

    def by_differences(self, sample, args, kwargs, given, level, j, a, b):
        """Whether differences of the function, or of its first derivative, agree with our gradient and not with torch's."""
        double = lambda x: x.detach().to(WIDE.get(x.dtype, x.dtype)).requires_grad_(x.requires_grad)
        args, kwargs = _convert.mapped((list(args), kwargs), double)
        changed = [x for x in _convert.leaves([args, kwargs], torch.Tensor) if x.requires_grad][j]
        if a is None:
            a = torch.zeros_like(changed)
        else:
            if tuple(a.shape) != tuple(changed.shape):
                return False
            a = _convert.array(a).to(changed.dtype)
        b = torch.zeros_like(changed) if b is None else b.detach().resolve_conj().to(changed.dtype)
        loose = SLOPES[sample_dtype(sample)]
        generator, start = torch.Generator().manual_seed(11), changed.detach().clone()
        ours_right, theirs_right = True, True
        for _ in range(4):
            along = Cotangents.drawn_for(start, generator)
            if self.op.name == "cholesky_inverse" and along.is_complex():
                along.diagonal(dim1=-2, dim2=-1).imag.zero_()       # LAPACK takes the factor's diagonal for real
            ends = []
            for step in (1e-5, -1e-5):
                with torch.no_grad():
                    changed.copy_(start + step * along)
                ends.append(self.paired(sample, args, kwargs, given, level))
            with torch.no_grad():
                changed.copy_(start)
            if None in ends:
                return False
            slope = (ends[0] - ends[1]) / 2e-5
            scale = 1 + abs(slope) + float(torch.nan_to_num(a.abs()).max() if a.numel() else 0)
            right = [abs(float((g.conj() * along).real.sum()) - slope) <= loose * scale for g in (a, b)]
            ours_right, theirs_right = ours_right and right[0], theirs_right and right[1]
        return ours_right and not theirs_right

    def paired(self, sample, args, kwargs, given, level):
        """The sum of what is differentiated at a level, with the cotangents of that level."""
        process, total = sample.output_process_fn_grad, 0.0
        if level == 0:
            results = called(lambda: _convert.leaves(process(self.theirs(*args, **kwargs)), torch.Tensor))
        else:           # of our own first derivative, as torch's may be what is wrong
            mine, mine_kwargs = _convert.ours([list(args), kwargs])
            first = called(derived, pt, self.ours, mine, mine_kwargs, _convert.rebound(process), 1, given.ours)
            results = first if isinstance(first, Raised) else [None if x is None else _convert.array(x) for x in first[0]]
        if isinstance(results, Raised):
            return None
        for k, x in enumerate(results):
            g = given.drawn.get((level, k))
            if x is not None and g is not None:
                g = g.to(x.dtype if x.is_complex() == g.is_complex() else g.dtype)
                total += float((g.resolve_conj().conj() * x.detach().resolve_conj()).real.sum())
        return total

    def undefined(self, order, a, b):
        """Whether torch leaves its own test of such derivatives out, and has NaN where ours is a number: at a kink."""
        test = "test_fn_grad" if order == 1 else "test_fn_gradgrad"
        out = any(getattr(d, "cls_name", "") == "TestBwdGradients" and getattr(d, "test_name", "") == test
                  for d in self.op.decorators)
        if not out or a is None or b is None or not bool(b.isnan().any()):
            return False
        rest = ~b.isnan()
        return bool(torch.isclose(_convert.array(a)[rest], b.detach()[rest]).all())

    def ties(self, a, b, dtype):
        """Whether the gradients went to other places among equal elements, of which short numbers have many."""
        return (self.op.name in (*_factors.POSITIONS, "msort") and dtype in (torch.float16, torch.bfloat16)
                and a is not None and b is not None and a.shape == b.shape
                and torch.equal(_convert.array(a).flatten().sort()[0], b.detach().flatten().sort()[0]))

    def gradient_differs(self, a, b, dtype):
        if b is None and a is None:
            return None
        if self.op.name in HERMITIAN and a is not None and b is not None and a.shape == tuple(b.shape):
            # Of the two triangles one stands for the other, and the diagonal for its real part.
            a, b = (a + a.mH) / 2, (b + b.mH) / 2
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
HERMITIAN = {"cholesky", "linalg.cholesky", "linalg.cholesky_ex"}
MATRICES = {"cholesky", "cholesky_inverse", "cholesky_solve", "geqrf", "lu", "lu_solve", "logdet", "ormqr", "pinverse", "qr",
            "svd", "triangular_solve", "svd_lowrank", "pca_lowrank"}
PHASES = ("forward", "method", "operator", "inplace", "out", "layouts", "meta", "backward", "second", "errors")


def keeping(x):
    """A copy of a tensor, and of all the memory that it is a part of."""
    if x.device.type == "meta":
        return x
    whole = torch.as_strided(x.detach(), (x.untyped_storage().nbytes() // x.element_size(),), (1,), 0).clone()
    return torch.as_strided(whole, x.shape, x.stride(), x.storage_offset()).detach()


def sample_dtype(sample):
    found = [x.dtype for x in _convert.leaves([sample.input, sample.args, sample.kwargs], torch.Tensor) if x.requires_grad]
    return found[0]


def plain(function, *args, **kwargs):
    return function(*args, **kwargs)


def of_tensor(change, x):
    return change(x) if isinstance(x, torch.Tensor) else x


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

    def __init__(self, hermitian=False):
        self.drawn, self.generator = {}, torch.Generator().manual_seed(7)
        self.hermitian = hermitian      # whether a gradient says as much as its Hermitian part

    @staticmethod
    def drawn_for(x, generator):
        g = torch.randn(x.shape, dtype=torch.float64, generator=generator)
        if x.is_complex():
            g = torch.complex(g, torch.randn(x.shape, dtype=torch.float64, generator=generator))
        return g.to(x.dtype)

    def draw(self, level, k, x):
        g = self.drawn_for(x, self.generator)
        self.drawn[level, k] = (g + g.mH) / 2 if self.hermitian and level else g
        return self.drawn[level, k]

    def wide(self, level, k, x):
        return self.drawn[level, k].to(x.dtype)

    def ours(self, level, k, x):
        g = self.drawn.get((level, k))
        return pt.zeros_like(x) if g is None else _convert.tensor(g)


def walk(op, seed=0, quick=True, phases=PHASES, few=False):
    """{phase: [tried, [what is wrong], how many are meant to differ]} of an entry, and the strides that differ where torch
    promises none."""
    state = Walk(op, seed, quick, few)
    found = {}
    if state.ours is None:
        return {"forward": [1, ["absent"], 0]}, []
    for phase in phases:
        tried, wrong, meant = 0, [], 0
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
            if text and _differences.reason(op.full_name, phase, text):
                meant += 1
            elif text:
                wrong.append(f"{text} | {label}")
        if tried or wrong:
            found[phase] = [tried, wrong, meant]
    return found, state.notes
