"""One optimizer, all phases: each gives pairs of a label and a check, which returns what is wrong or None."""
import copy
import inspect
import io
import pickle
import re
import warnings
from functools import partial

import torch
from _database import walked
from op_db import _compare, _convert
from op_db._phases import Raised, called, same_class
from torch.testing._internal.common_optimizers import OptimizerErrorEnum, optim_db

import ptcore as pt

# Sparse gradients have an issue of their own.
ENTRIES = {info.name: info for info in optim_db if not info.only_supports_sparse_grads}
PHASES = ("build", "steps", "groups", "states", "resumed", "errors")
STEPS = 10
DTYPES = (torch.float32, torch.float64)
TOLERANCE = {torch.float32: (1e-5, 1e-6), torch.float64: (1e-9, 1e-10)}
SCRATCH = ("al", "ro", "H_diag", "t", "prev_loss")
SHAPES = ((3, 4), (5, 2), (2, 2))           # of two dims, as one optimizer takes no others


class Walk:
    """All phases of one optimizer."""

    def __init__(self, info, seed=0, quick=True):
        self.op, self.seed = info, seed
        self.theirs, self.ours = info.optim_cls, getattr(pt.optim, info.name)
        self.shapes = SHAPES if info.name == "Muon" else (*SHAPES[:2], (4,), ())
        if info.name != "Adafactor":            # neither takes empty ones
            self.shapes += (0, 2),

    def settings(self):
        """The settings of the entry, each with every way to compute that both libraries have."""
        for dtype in DTYPES:
            for given in self.op.optim_inputs_func("cpu", dtype):
                for way in ({}, *[{flag: True} for flag in self.op.supported_impls]):
                    of_tensor = isinstance(given.kwargs.get("lr"), torch.Tensor)
                    if "differentiable" in way or ("foreach" in way and of_tensor):
                        continue                # the one needs parameters that are no leaves, the other is refused
                    yield f"{dtype} {given.desc} {given.kwargs} {way}", dtype, {**given.kwargs, **way}

    def tolerance(self, dtype, settings):
        """torch rounds to float32 where ``lr`` is a tensor of it, and in steps over lists of ``ASGD``."""
        rounds = isinstance(settings.get("lr"), torch.Tensor) or (self.op.name == "ASGD" and "foreach" in settings)
        rtol, atol = TOLERANCE[torch.float32 if rounds else dtype]
        more = 1000 if self.op.name == "LBFGS" else 1       # it divides differences
        return lambda dtype: (more * rtol, more * atol)

    def parameters(self, dtype):
        """Parameters of both libraries with the same numbers."""
        generator = torch.Generator().manual_seed(self.seed)
        theirs = [torch.randn(shape, dtype=dtype, generator=generator) for shape in self.shapes]
        return [_convert.tensor(x).requires_grad_() for x in theirs], [x.requires_grad_() for x in theirs]

    def loss(self, parameters, step):
        """A smooth function of the parameters, another at every step."""
        return sum(((p - 0.1 * step) ** 2).sum() * (1 + 0.3 * k) + (p * 0.7).sin().sum()
                   for k, p in enumerate(parameters))

    def step(self, optimizer, parameters, step):
        def closure():
            optimizer.zero_grad()
            loss = self.loss(parameters, step)
            loss.backward()
            return loss
        if self.op.step_requires_closure:
            return optimizer.step(closure)
        loss = closure()
        optimizer.step()
        return loss

    def both(self, dtype, settings, grouped=False):
        """Both optimizers and their parameters."""
        mine, theirs = self.parameters(dtype)

        def groups(x):
            if not grouped:
                return x
            first = {"params": x[:1]}
            return [{**first, "lr": 0.02}, {"params": x[1:]}]
        optimizer = self.ours(groups(mine), **_convert.ours(settings))
        return (mine, optimizer), (theirs, self.theirs(groups(theirs), **settings))

    def walked(self, dtype, settings, grouped=False, steps=STEPS):
        """What differs while both go the same steps, or the pairs."""
        mine, theirs = self.both(dtype, settings, grouped)
        tolerance = self.tolerance(dtype, settings)
        for step in range(steps):
            losses = [self.step(optimizer, parameters, step) for parameters, optimizer in (mine, theirs)]
            text = _compare.differ(*losses, tolerance) or _compare.differ(mine[0], theirs[0], tolerance)
            if text:
                return f"step {step}: {text}"
        return mine, theirs

    # -- phases ------------------------------------------------------------------------------------

    def build(self):
        """The names, the order and the defaults of the constructor, and of the groups that it makes."""
        yield "signature", self.signature
        for label, dtype, settings in self.settings():
            yield label, partial(self.as_built, dtype, settings)

    def signature(self):
        a, b = ([(p.name, p.kind, p.default) for p in inspect.signature(c).parameters.values()] for c in (
            self.ours, self.theirs))
        return None if a == b else f"{a}, expected {b}"

    def as_built(self, dtype, settings):
        (_, mine), (_, theirs) = self.both(dtype, settings)
        a, b = ({k: v for k, v in o.param_groups[0].items() if k != "params"} for o in (mine, theirs))
        if list(a) != list(b):
            return f"a group has {list(a)}, expected {list(b)}"
        for key in b:
            text = _compare.differ(a[key], b[key], self.tolerance(dtype, settings))
            if text:
                return f"{key}: {text}"
        if repr(mine) != repr(theirs):
            return f"repr {mine!r}, expected {theirs!r}"
        return None

    def steps(self):
        for label, dtype, settings in self.settings():
            yield label, partial(self.same_steps, dtype, settings)

    def groups(self):
        if not self.op.supports_param_groups:
            return
        for label, dtype, settings in self.settings():
            yield label, partial(self.same_steps, dtype, settings, True)

    def same_steps(self, dtype, settings, grouped=False):
        # In float32 L-BFGS follows the last bits from near the minimum on, which depend on the processor.
        few = self.is_last_bits(dtype)
        found = self.walked(dtype, settings, grouped, steps=3 if few else STEPS)
        return found if isinstance(found, str) else None

    def states(self):
        """The state after the steps: its keys, dtypes, values; and all of ``state_dict``."""
        for label, dtype, settings in self.settings():
            yield label, partial(self.same_states, dtype, settings)

    def same_states(self, dtype, settings):
        # Near the minimum the history of one holds differences of nearly equal numbers.
        found = self.walked(dtype, settings, steps=2 if self.op.name == "LBFGS" else STEPS)
        if isinstance(found, str):
            return found
        (_, mine), (_, theirs) = found
        a, b = mine.state_dict(), theirs.state_dict()
        if list(a) != list(b) or list(a["state"]) != list(b["state"]):
            return f"state_dict has {list(a)} of {list(a['state'])}, expected {list(b)} of {list(b['state'])}"
        for index, state in b["state"].items():
            if self.op.name == "LBFGS" and self.tolerance(dtype, settings)(dtype)[0] > 1e-4:
                continue                        # the number of its evaluations depends on the last bits
            if self.op.name == "LBFGS":         # numbers in place of tensors of one element, and no scratch list
                state = {key: value for key, value in state.items() if key not in SCRATCH}
                if set(a["state"][index]) - set(SCRATCH) != set(state):
                    return f"state {index} has {list(a['state'][index])}, expected {list(state)}"
            elif list(a["state"][index]) != list(state):
                return f"state {index} has {list(a['state'][index])}, expected {list(state)}"
            for key, value in state.items():
                text = _compare.differ(a["state"][index][key], value, self.tolerance(dtype, settings))
                if text:
                    return f"state {index} {key}: {text}"
        for x, y in zip(a["param_groups"], b["param_groups"]):
            if list(x) != list(y):
                return f"a group has {list(x)}, expected {list(y)}"
            if x["params"] != y["params"]:
                return "params"
        return None

    def is_last_bits(self, dtype):
        """Whether later steps follow the last bits of sums, as those of L-BFGS near the minimum do in float32."""
        return self.op.name == "LBFGS" and dtype is torch.float32

    def resumed(self):
        """An optimizer that goes on from a saved state, a pickle or torch's state takes the same steps as the first."""
        for label, dtype, settings in self.settings():
            yield label, partial(self.goes_on, dtype, settings)

    def goes_on(self, dtype, settings):
        found = self.walked(dtype, settings, steps=3)
        if isinstance(found, str):
            return found
        (parameters, mine), (_, theirs) = found
        file = io.BytesIO()
        pt.save(mine.state_dict(), file)
        file.seek(0)
        starts = {"saved": pt.load(file), "pickled": pickle.loads(pickle.dumps(mine)).state_dict(),
                  "copied": copy.deepcopy(mine.state_dict()), "torch's": _convert.ours(theirs.state_dict())}
        others = {}
        for name, start in starts.items():
            copies = [p.detach().clone().requires_grad_() for p in parameters]
            optimizer = self.ours(copies, **_convert.ours(settings))
            optimizer.load_state_dict(start)
            others[name] = copies, optimizer
        for step in range(3, 6):
            if step == 4 and self.is_last_bits(dtype):
                del others["torch's"]
            self.step(mine, parameters, step)
            for name, (copies, optimizer) in others.items():
                self.step(optimizer, copies, step)
                for a, b in zip(copies, parameters):
                    near = pt.allclose(a, b, *self.tolerance(dtype, settings)(dtype))
                    if not near or (name != "torch's" and not pt.equal(a, b)):
                        return f"{name}, step {step}: {a.tolist()}, expected {b.tolist()}"
        return None

    def errors(self):
        if self.op.optim_error_inputs_func is None:
            return
        for dtype in DTYPES:
            for i, wrong in enumerate(self.op.optim_error_inputs_func("cpu", dtype)):
                yield f"{dtype} {i} {wrong.optimizer_error_input.desc}", partial(self.error, wrong)

    def error(self, wrong):
        given = wrong.optimizer_error_input
        params = given.params
        if params is None:
            params = [torch.nn.Parameter(torch.ones(2, 2))]
        expected = f"{wrong.error_type.__name__}: {wrong.error_regex}"
        mine, settings = _convert.ours([params, given.kwargs])
        theirs = called(self.attempt, self.theirs, params, given.kwargs, wrong.error_on)
        got = called(self.attempt, self.ours, mine, settings, wrong.error_on)
        if not isinstance(got, Raised):
            return f"no error, expected {expected}" if isinstance(theirs, Raised) else None
        if not isinstance(theirs, Raised):
            return f"raised {got}, torch nothing"
        return None if same_class(got.error, theirs.error) else f"raised {got}, expected {theirs}"

    def attempt(self, cls, params, settings, where):
        with warnings.catch_warnings():
            warnings.simplefilter("error", UserWarning)
            optimizer = cls(params, **settings)
            if where is OptimizerErrorEnum.STEP_ERROR:
                for p in optimizer.param_groups[0]["params"]:
                    p.grad = p.detach().clone()
                optimizer.step()
            return optimizer


def reason(phase, text):
    """Whether a difference is meant: it stands on the page of differences."""
    return phase == "errors" and re.search("no error, .* as a Tensor is not supported for capturable=False", text)


def walk(info, seed=0, quick=True, phases=PHASES):
    return walked(Walk(info, seed, quick), phases, reason)
