"""Interrupts of programs at random moments: ``python -P _moments.py PROGRAM NUMBER SEED`` prints what was wrong.

Each program is run from new objects, and a timer of the system raises KeyboardInterrupt somewhere in it. Then nothing may
be on that was off: modes, stacks, hooks of the process, open files. A file is the old one or the new one, whole, and
nothing lies beside it. What the program worked on can be worked on further, and a run of it from new objects ends as the
first one did.
"""
import contextlib
import gc
import os
import random
import signal
import sys
import tempfile
import threading
import time
import warnings
from pathlib import Path

import ptcore as pt
from ptcore import nn
from ptcore.utils.checkpoint import checkpoint

warnings.simplefilter("ignore", ResourceWarning)        # of a file object that an interrupt dropped, which closes it
F = nn.functional
FOLDER = Path(tempfile.mkdtemp())


class Program:
    """``begin()`` makes objects, ``run(objects)`` is interrupted, ``check(objects)`` raises if they are not as they may
    be, ``result(objects)`` is what a whole run ends with."""

    def begin(self):
        pt.manual_seed(0)
        return None

    def check(self, objects):
        pass

    def result(self, objects):
        return None


class Files(Program):
    """Saves over an older file."""

    def __init__(self, suffix, save=pt.save, load=pt.load):
        self.path, self.save, self.load = FOLDER / f"file{suffix}", save, load

    def values(self, number):
        return {"a": pt.full((50, 40), float(number)), "b": pt.arange(7) * number}

    def begin(self):
        self.save(self.values(1), self.path)

    def run(self, _):
        self.save(self.values(2), self.path)

    def check(self, _):
        assert sorted(p.name for p in FOLDER.iterdir()) == [self.path.name], sorted(p.name for p in FOLDER.iterdir())
        found = self.load(self.path)
        number = found["a"][0, 0].item()
        assert number in (1, 2), number
        assert all(pt.equal(found[key], value) for key, value in self.values(number).items())

    def result(self, _):
        return self.load(self.path)["b"].tolist()


class Loads(Files):
    def run(self, _):
        for options in ({}, {"map_location": "cpu"}):
            self.seen = self.load(self.path, **options)["b"].tolist()

    def result(self, _):
        return self.seen


class Steps(Program):
    """Steps of an optimizer with hooks, a schedule and a scaler."""

    def __init__(self, make):
        self.make = make

    def begin(self):
        pt.manual_seed(0)
        model = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 1))
        optimizer = self.make(model.parameters())
        seen = []
        optimizer.register_step_pre_hook(lambda *args: seen.append(1) and None)
        optimizer.register_step_post_hook(lambda *args: seen.append(2) and None)
        schedule = pt.optim.lr_scheduler.StepLR(optimizer, 2, 0.5)
        return model, optimizer, schedule, pt.ones(5, 3)

    def run(self, objects):
        model, optimizer, schedule, x = objects

        def closure():
            optimizer.zero_grad()
            loss = (model(x) ** 2).mean()
            loss.backward()
            return loss
        for _ in range(3):
            optimizer.step(closure)
            schedule.step()

    def check(self, objects):
        model, optimizer, *_ = objects
        self.run(objects)
        assert all(p.isfinite().all() for p in model.parameters())
        optimizer.load_state_dict(optimizer.state_dict())
        self.run(objects)

    def result(self, objects):
        return [p.tolist() for p in objects[0].parameters()], objects[2].state_dict()


class Hooks(Program):
    """Hooks of tensors, nodes, modules and of the process, which are removed."""

    def begin(self):
        pt.manual_seed(0)
        return nn.Linear(3, 3), pt.ones(2, 3, requires_grad=True), []

    def run(self, objects):
        model, x, told = objects
        module = nn.modules.module
        y = x * 2
        handles = [y.register_hook(lambda g: g * 2), y.grad_fn.register_hook(lambda *g: None),
                   model.register_forward_hook(lambda m, a, r: r + 1), model.register_forward_pre_hook(lambda m, a: None),
                   model.register_full_backward_hook(lambda m, i, o: told.append(1)),
                   model.weight.register_post_accumulate_grad_hook(lambda p: told.append(2))]
        with module.register_module_forward_hook(lambda m, a, r: None):
            model(y).sum().backward()
        for h in handles:
            h.remove()

    def check(self, objects):
        model, x, _ = objects
        for hooks in (model._forward_hooks, model._forward_pre_hooks, model._backward_hooks):
            hooks.clear()
        model(x).sum().backward()

    def result(self, objects):
        return objects[1].grad.tolist(), objects[2]


class Contexts(Program):
    def run(self, _):
        w, x = pt.ones(3, 3, requires_grad=True), pt.ones(2, 3)
        for _ in range(3):
            with pt.autocast("cpu", dtype=pt.bfloat16):
                y = F.linear(x, w)
                with pt.no_grad(), pt.enable_grad():
                    y = F.linear(y, w)
                with pt.autocast("cpu", enabled=False):
                    y = y.float() @ w
            with pt.inference_mode(), pt.set_grad_enabled(True):
                F.linear(x, w)
            with pt.autograd.set_detect_anomaly(True), pt.autograd.graph.save_on_cpu():
                y.sum().backward()
        self.seen = w.grad.tolist()

    def result(self, _):
        return self.seen


class Decorated(Program):
    """The contexts as decorators, and of generators."""

    def run(self, _):
        @pt.no_grad()
        def plain(x):
            return x * 2

        @pt.inference_mode()
        def steps(x):
            for _ in range(3):
                x = yield x + 1

        @pt.autocast("cpu", dtype=pt.bfloat16)
        def cast(x):
            return x @ x
        x = pt.ones(2, 2, requires_grad=True)
        for _ in range(5):
            walk = steps(x)
            y = next(walk)
            walk.send(plain(cast(x)))
            walk.close()
        self.seen = y.tolist()

    def result(self, _):
        return self.seen


class Checkpoints(Program):
    def begin(self):
        pt.manual_seed(0)
        return nn.Sequential(nn.Linear(3, 4), nn.Dropout(0.5), nn.Linear(4, 1)), pt.ones(5, 3, requires_grad=True)

    def run(self, objects):
        model, x = objects
        model.zero_grad()
        for reentrant in (False, True):
            checkpoint(model, x, use_reentrant=reentrant).sum().backward()

    def check(self, objects):
        self.run(objects)

    def result(self, objects):
        return [p.grad.tolist() for p in objects[0].parameters()]


class Transformed(Program):
    def run(self, _):
        x = pt.arange(6.).reshape(3, 2)
        f = pt.compile(lambda t: (t * 2).sin() + 1)
        g = pt.vmap(pt.func.grad(lambda t: (t * t).sin().sum()))
        self.seen = [f(x).tolist(), g(x).tolist(), pt.func.jacfwd(lambda t: t * t)(x[0]).tolist(),
                     pt.func.functionalize(lambda t: t.clone().mul_(2))(x).tolist(),
                     pt.jit.trace(lambda t: t * 2, (x,))(x).tolist()]

    def result(self, _):
        return self.seen


class Scaled(Steps):
    """Mixed precision with a scaler, and averaged weights."""

    def begin(self):
        model, optimizer, _, x = super().begin()
        return model, optimizer, (pt.amp.GradScaler("cpu", init_scale=8.0), pt.optim.swa_utils.AveragedModel(model)), x

    def run(self, objects):
        model, optimizer, (scaler, average), x = objects
        for _ in range(2):
            optimizer.zero_grad()
            with pt.autocast("cpu", dtype=pt.bfloat16):
                loss = (model(x) ** 2).mean()
            scaler.scale(loss).backward()
            scaler.unscale_(optimizer)
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            scaler.step(optimizer)
            scaler.update()
            average.update_parameters(model)

    def check(self, objects):
        scaler = objects[2][0]
        # as in PyTorch, update() goes before the next step where a step was left
        with contextlib.suppress(AssertionError):
            scaler.update()
        self.run(objects)

    def result(self, objects):
        return [p.tolist() for p in objects[2][1].parameters()], objects[2][0].state_dict()


class Modules(Program):
    """Forks of the generator, and states of modules."""

    def begin(self):
        pt.manual_seed(0)
        return nn.Linear(3, 3), nn.Linear(3, 3)

    def run(self, objects):
        one, other = objects
        for _ in range(3):
            with pt.random.fork_rng():
                pt.rand(3)
            other.load_state_dict(one.state_dict())
            with nn.utils.parametrize.cached():
                one(pt.ones(1, 3))
            pt.func.functional_call(other, {"weight": pt.ones(3, 3)}, (pt.ones(1, 3),))
        self.seen = pt.rand(2).tolist()

    def check(self, objects):
        objects[1](pt.ones(1, 3))
        assert isinstance(objects[1].weight, nn.Parameter) and vars(objects[1]).keys() == vars(objects[0]).keys()

    def result(self, _):
        return self.seen


OPTIMIZERS = {"SGD": lambda ps: pt.optim.SGD(ps, 0.1, momentum=0.9), "Adam": lambda ps: pt.optim.Adam(ps, 0.01),
              "LBFGS": lambda ps: pt.optim.LBFGS(ps, max_iter=3)}
PROGRAMS = {
    "save .pt": Files(".pt"), "save .safetensors": Files(".safetensors"), "save .npz": Files(".npz"),
    "load .pt": Loads(".pt"), "load .safetensors": Loads(".safetensors"),
    **{f"steps of {name}": Steps(make) for name, make in OPTIMIZERS.items()},
    "steps with a scaler": Scaled(OPTIMIZERS["SGD"]), "hooks": Hooks(), "contexts": Contexts(), "decorators": Decorated(),
    "checkpoints": Checkpoints(), "transformations": Transformed(), "modules": Modules()}


def state():
    """What of this process and thread a program may not change."""
    from ptcore import _interpret, _state
    from ptcore.nn.modules import module
    from ptcore.optim import optimizer
    hooks = [len(value) for place in (module, optimizer) for name, value in sorted(vars(place).items())
             if name.startswith("_global_") and isinstance(value, dict)]
    files = sorted(os.listdir("/proc/self/fd")) if os.path.isdir("/proc/self/fd") else []
    return {"grad": pt.is_grad_enabled(), "inference": pt.is_inference_mode_enabled(), "mode": _state.mode_word(),
            "interpreters": len(_interpret.entered()), "functions": len(_state.function_modes()),
            "saved": _state.innermost_saved_hooks() is None, "autocast": pt.is_autocast_enabled("cpu"),
            "hooks": hooks, "files": len(files),
            "threads": threading.active_count(), "default": (str(pt.get_default_dtype()), str(pt.get_default_device()))}


def whole(program):
    objects = program.begin()
    start = time.perf_counter()
    program.run(objects)
    return program.result(objects), time.perf_counter() - start


def interrupted(program, number, seed):
    """(how many interrupts there were, what was wrong)."""
    whole(program)
    want, _ = whole(program)
    long = min(whole(program)[1] for _ in range(3))
    before, wrong, count, draw = state(), [], 0, random.Random(seed)
    for trial in range(20 * number):
        if trial >= number and count >= number // 4:    # on a busy machine many runs end before their moment
            break
        objects, error = program.begin(), None
        try:
            try:
                signal.setitimer(signal.ITIMER_REAL, max(1e-6, draw.random() * long))
                program.run(objects)
            finally:
                signal.setitimer(signal.ITIMER_REAL, 0)
        except KeyboardInterrupt:
            count += 1
        except BaseException as e:
            error = f"{type(e).__name__} in its place: {e}"
        gc.collect()
        try:
            assert error is None, error
            found = state()
            assert found == before, {k: (before[k], found[k]) for k in found if found[k] != before[k]}
            program.check(objects)
            if trial % 8 == 0:
                got, _ = whole(program)
                assert got == want, f"{got} in place of {want}"
        except Exception as e:
            wrong.append(f"interrupt {trial}: {type(e).__name__}: {e}")
            before = state()
    return count, wrong


if __name__ == "__main__":
    signal.signal(signal.SIGALRM, signal.default_int_handler)
    name, number, seed = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    count, wrong = interrupted(PROGRAMS[name], number, seed)
    print(f"{count} interrupts")
    print(*wrong[:8], sep="\n")
    sys.exit(bool(wrong))
