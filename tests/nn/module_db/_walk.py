"""One module, all phases: each gives pairs of a label and a check, which returns what is wrong or None."""
import copy
import io
import itertools
import pickle
import re
from functools import partial

import torch
from _database import walked
from op_db import _compare, _convert, _phases
from op_db._phases import Raised, called
from torch.testing._internal.common_modules import ModuleErrorEnum, module_db

import ptcore as pt

ENTRIES = {info.name.removeprefix("nn."): info for info in module_db}
PHASES = ("build", "train", "eval", "backward", "second", "formats", "strided", "copies", "errors")
QUICK = 4                   # the inputs of each dtype that are tried where not all are
DTYPES = (torch.float32, torch.float64)
FORMATS = {4: torch.channels_last, 5: torch.channels_last_3d}


def carried(x, memo=None):
    """An argument of a constructor or of a module as ptcore takes it; functions and modules among them too."""
    memo = {} if memo is None else memo
    if isinstance(x, torch.nn.TransformerEncoderLayer):
        layer = pt.nn.TransformerEncoderLayer(
            x.self_attn.embed_dim, x.self_attn.num_heads, x.linear1.out_features, x.dropout.p, carried(x.activation),
            x.norm1.eps, x.self_attn.batch_first, x.norm_first, x.linear1.bias is not None)
        return layer.to(_convert.DTYPES[x.linear1.weight.dtype])
    if getattr(x, "__module__", "") in ("torch.nn.functional", "torch._C._nn", "torch") and callable(x):
        return getattr(pt.nn.functional, x.__name__, None) or getattr(pt, x.__name__)
    if type(x) in (list, tuple):
        return type(x)([carried(part, memo) for part in x])
    if isinstance(x, torch.nn.utils.rnn.PackedSequence):
        return pt.nn.utils.rnn.PackedSequence(*[carried(part, memo) for part in x])
    if type(x) is dict:
        return {key: carried(value, memo) for key, value in x.items()}
    return _convert.ours(x, memo)


class Walk(_phases.Walk):
    """All phases of one module. ``quick``: of the first inputs."""

    def __init__(self, info, seed=0, quick=True):
        self.op, self.seed, self.quick, self.notes, self.strict = info, seed, quick, [], False
        self.theirs = info.module_cls
        self.ours = getattr(pt.nn, info.module_cls.__name__)
        self.modes = (True, False) if info.train_and_eval_differ else (True,)

    def inputs(self, dtype, grad=False, training=True):
        torch.manual_seed(self.seed)
        found = self.op.module_inputs_func(self.op, device="cpu", dtype=dtype, requires_grad=grad, training=training)
        found = [given for given in found if given.forward_input is not None]
        return itertools.islice(found, QUICK) if self.quick else found

    def each(self, check, grad=False, modes=None):
        for training in modes or self.modes:
            for dtype in DTYPES:
                for i, given in enumerate(self.inputs(dtype, grad, training)):
                    yield f"{dtype} {i} training={training} {given.desc} {settings(given)}", partial(
                        check, given, dtype, training)

    def built(self, given, dtype, training=True):
        """Both modules, ours with the state of torch's, or a text."""
        made = given.constructor_input
        theirs = self.theirs(*made.args, **made.kwargs).to(dtype).train(training)
        mine = self.ours(*carried(made.args), **carried(made.kwargs)).to(_convert.DTYPES[dtype]).train(training)
        if self.op.is_lazy:
            args, kwargs = arguments(given)
            theirs(*args, **kwargs)
            mine(*carried(args), **carried(kwargs))
        text = self.layout(mine, theirs)
        if text:
            return text
        mine.load_state_dict({key: _convert.tensor(x) for key, x in theirs.state_dict().items()})
        return mine, theirs

    def layout(self, mine, theirs):
        """What differs between the names, the order, the shapes and the dtypes of two modules' states."""
        a, b = mine.state_dict(), theirs.state_dict()
        if list(a) != list(b):
            return f"state_dict has {list(a)}, expected {list(b)}"
        for names in ("named_parameters", "named_buffers", "named_modules", "named_children"):
            found, wanted = [[name for name, _ in getattr(m, names)()] for m in (mine, theirs)]
            if found != wanted:
                return f"{names}: {found}, expected {wanted}"
        for key in a:
            text = _compare.metadata(a[key], b[key], True)
            if text:
                return f"state_dict[{key!r}]: {text}"
        if [p.requires_grad for p in mine.parameters()] != [p.requires_grad for p in theirs.parameters()]:
            return "requires_grad of parameters"
        return None

    def same_state(self, mine, theirs):
        for (key, a), b in zip(mine.state_dict().items(), theirs.state_dict().values()):
            text = _compare.differ(a, b, self.tolerance)
            if text:
                return f"state_dict[{key!r}] after the call: {text}"
        return None

    # -- phases ------------------------------------------------------------------------------------

    def build(self):
        yield from self.each(self.as_built)

    def as_built(self, given, dtype, training):
        both = self.built(given, dtype, training)
        if isinstance(both, str):
            return both
        mine, theirs = both
        if repr(mine) != repr(theirs).replace("torch.", "ptcore."):
            return f"repr {mine!r}, expected {theirs!r}"
        return None

    def train(self):
        yield from self.each(self.forward_of, modes=(True,))

    def eval(self):
        yield from self.each(self.forward_of, modes=(False,))

    def forward_of(self, given, dtype, training, change=None):
        both = self.built(given, dtype, training)
        if isinstance(both, str):
            return both
        return self.compared(*both, *arguments(given), dtype)

    def compared(self, mine, theirs, args, kwargs, dtype, strides=False):
        before = copy.deepcopy(theirs)
        got = called(mine, *carried(args), **carried(kwargs))
        expected = called(theirs, *_convert.mapped(args, _phases.keeping), **kwargs)

        def again(seeded=True):
            return (called if seeded else _phases.plain)(copy.deepcopy(before), *args, **kwargs)

        def exact():
            wide = copy.deepcopy(before).double()
            return wide(*self.widened_to(args), **self.widened_to(kwargs))
        text = self.judged(got, expected, again, exact, views=strides)
        if text or isinstance(expected, Raised):
            return text
        return self.same_state(mine, theirs)

    def widened_to(self, x):
        return _convert.mapped(x, lambda t: t.detach().double() if t.is_floating_point() else t)

    def backward(self):
        yield from self.each(partial(self.slopes, 1), grad=True)

    def second(self):
        if self.op.supports_gradgrad:
            for label, check in self.each(partial(self.slopes, 2), grad=True):
                if "float64" in label:
                    yield label, check

    def tolerance(self, dtype):
        rtol, atol = super().tolerance(dtype)
        return (4 * rtol, atol) if dtype is torch.float32 else (rtol, atol)     # sums in another order

    def slopes(self, order, given, dtype, training):
        both = self.built(given, dtype, training)
        if isinstance(both, str):
            return both
        mine, theirs = both
        wide = copy.deepcopy(theirs).double()
        args, kwargs = arguments(given)
        args = _convert.mapped(args, lambda x: x.detach().clone().requires_grad_(x.requires_grad))
        given = _phases.Cotangents()

        def result_of(module):
            return lambda parameters, args, kwargs: module(*args, **kwargs)
        expected = called(_phases.derived, torch, result_of(theirs), [list(theirs.parameters()), args, kwargs], {},
                          nothing, order, given.draw)
        if isinstance(expected, Raised) or expected is None:
            return None
        inputs = [list(mine.parameters()), carried(args), carried(kwargs)]
        got = called(_phases.derived, pt, result_of(mine), inputs, {}, nothing, order, given.ours)
        if isinstance(got, Raised) or got is None:
            return f"gradients: {got}"
        if len(got) < len(expected) and any(x is not None and bool(x.any()) for x in expected[-1]):
            return "no gradient requires grad"

        def again(seeded=True):
            return (called if seeded else _phases.plain)(theirs, *args, **kwargs)

        for i, level in enumerate(expected[:len(got)]):
            for j, b in enumerate(level):
                text = self.gradient_differs(got[i][j], b, dtype)
                if text and dtype is torch.float32:
                    turned = _convert.mapped(args, lambda x: x.detach().double().requires_grad_(
                        x.requires_grad) if x.is_floating_point() else x)
                    inputs = [list(wide.parameters()), turned, kwargs]
                    exact = called(_phases.derived, torch, result_of(wide), inputs, {}, nothing, order, given.wide)
                    if not isinstance(exact, Raised) and self.no_worse(got[i][j], b, exact[i][j], gradient=True):
                        continue
                if text and self.random(again):
                    continue
                if text:
                    return f"{('first', 'second')[i]} derivative {j}: {text}"
        return None

    def formats(self):
        """Module and inputs with channels last: the strides of what comes out."""
        def check(given, dtype, training):
            args, kwargs = arguments(given)
            form = FORMATS.get(args[0].dim()) if args else None
            if form is None or (form is torch.channels_last and self.op.name.endswith("3d")):
                raise _convert.NotCarried           # of unbatched volumes neither library converts the weights
            both = self.built(given, dtype, training)
            if isinstance(both, str):
                return both
            mine, theirs = both
            last = [x.to(memory_format=FORMATS[x.dim()]) if isinstance(x, torch.Tensor) and x.dim() in FORMATS and (
                x.is_floating_point()) else x for x in args]
            mine.to(memory_format=_convert.FORMATS[form])
            theirs.to(memory_format=form)
            for a, b in zip(mine.parameters(), theirs.parameters()):
                if not _compare.same_strides(a, b):
                    return f"a parameter has strides {a.stride()}, expected {b.stride()}"
            return self.compared(mine, theirs, last, kwargs, dtype, strides=self.op.module_memformat_affects_out and (
                dtype is torch.float32 or form is torch.channels_last))     # its volumes of float64 are row-major
        yield from self.each(check)

    def strided(self):
        """Inputs with gaps between their elements. torch reads lengths and targets with gaps past their ends."""
        def gaps(x):
            whole = torch.empty(*x.shape, 2, dtype=x.dtype)
            whole[..., 0] = x.detach()
            return whole[..., 0]

        def check(given, dtype, training):
            both = self.built(given, dtype, training)
            if isinstance(both, str):
                return both
            args, kwargs = arguments(given)
            return self.compared(*both, [gaps(x) if isinstance(x, torch.Tensor) and (
                x.is_floating_point()) else x for x in args], kwargs, dtype)
        yield from self.each(check)

    def copies(self):
        """A deep copy, a pickle, and a saved module: each computes what the module does."""
        yield from self.each(self.copied)

    def copied(self, given, dtype, training):
        both = self.built(given, dtype, False)
        if isinstance(both, str):
            return both
        mine, _ = both
        args, kwargs = carried(arguments(given))
        wanted = called(mine, *args, **kwargs)
        if isinstance(wanted, Raised):
            return None
        file = io.BytesIO()
        pt.save(mine.state_dict(), file)
        file.seek(0)
        other = copy.deepcopy(mine)
        with pt.no_grad():
            for p in other.parameters():
                p.zero_()
        other.load_state_dict(pt.load(file))
        copies = {"deepcopy": copy.deepcopy(mine), "pickle": pickle.loads(pickle.dumps(mine)), "state": other}
        for name, made in copies.items():
            text = self.layout(made, both[1])
            if text:
                return f"{name}: {text}"
            if any(a.data_ptr() == b.data_ptr() for a, b in zip(made.parameters(), mine.parameters()) if a.numel()):
                return f"{name}: parameters share memory"
            got = called(made, *args, **kwargs)
            for a, b in zip(_convert.leaves(got, pt.Tensor), _convert.leaves(wanted, pt.Tensor)):
                if not pt.equal(a.nan_to_num(), b.nan_to_num()):
                    return f"{name}: another result"
        return None

    def errors(self):
        if self.op.module_error_inputs_func is None:
            return
        for training in self.modes:
            for dtype in DTYPES:
                torch.manual_seed(self.seed)
                for i, wrong in enumerate(self.op.module_error_inputs_func(
                        self.op, device="cpu", dtype=dtype, requires_grad=False, training=training)):
                    label = f"{dtype} {i} {settings(wrong.module_error_input)}"
                    yield label, partial(self.error, wrong, dtype, training)

    def error(self, wrong, dtype, training):
        given = wrong.module_error_input
        made = given.constructor_input
        forward = wrong.error_on is ModuleErrorEnum.FORWARD_ERROR
        theirs = called(self.theirs, *made.args, **made.kwargs)
        mine = called(self.ours, *carried(made.args), **carried(made.kwargs))
        if forward:
            if isinstance(mine, Raised):
                return f"the constructor raised {mine}"
            args, kwargs = arguments(given)
            theirs = called(theirs.to(dtype).train(training), *args, **kwargs)
            mine = called(mine.to(_convert.DTYPES[dtype]).train(training), *carried(args), **carried(kwargs))
        if not isinstance(theirs, Raised):          # only in training
            return f"raised {mine}, torch nothing" if isinstance(mine, Raised) else None
        if not isinstance(mine, Raised):
            return f"no error, expected {theirs}"
        return None if _phases.same_class(mine.error, theirs.error) else f"raised {mine}, expected {theirs}"


def arguments(given):
    return list(given.forward_input.args), dict(given.forward_input.kwargs)


def settings(given):
    made = given.constructor_input
    return str(_convert.mapped([list(made.args), made.kwargs], lambda x: tuple(x.shape)))[:300]


def nothing(x):
    return x


# What is meant to differ: entry, phases, what the comparison then says. Each stands on the page of differences.
DIFFERENCES = {
    "CTCLoss": (("backward", "second"), "derivative"),          # the gradient is that by the argument
    "NLLLoss": (("errors",), r"no error, .*expected scalar type"),      # combinations of dtypes without a kernel
}


def walk(info, seed=0, quick=True, phases=PHASES):
    def reason(phase, text):
        of, pattern = DIFFERENCES.get(info.name.removeprefix("nn."), ((), ""))
        return phase in of and re.search(pattern, text)
    return walked(Walk(info, seed, quick), phases, reason)
