"""Runs that continue after their process has ended: one object for everything that a training loop depends on.

Batch systems stop jobs, nodes fail, memory runs out. The state that continues such a run exactly is spread over many
objects: weights, the optimiser's moments, the schedule, the order of the data and the position in it, four kinds of
random generators. :class:`Restart` gathers all of it, writes it as one file and finds the newest complete one. It also
counts the loops, ``epochs`` and ``batches``, since most errors of hand-written checkpoints are off by one: a step that
is repeated, an epoch that is left out.
"""
import os
import re
import signal
import traceback
import warnings

from ptcore.serialization import load, save
from ptcore.utils import _random_states

__all__ = ["Restart", "checkpoint_on_signal"]


class Restart:
    """Everything that a run needs to go on in a new process as if nothing had happened.

    Parameters
    ----------
    folder : str or os.PathLike
        Where the checkpoints are; made when the first one is saved. One process may write to it at a time.
    keep : int, default: 2
        How many of the newest checkpoints stay.
    every : int, optional
        Save after every so many steps of ``batches``; by default only when ``save`` is called.
    suffix : str, default: ".npz"
        The format, as :func:`ptcore.save` takes it. ``.safetensors`` has no checksums: a damaged number is not noticed.
    **parts
        Whatever has ``state_dict`` and ``load_state_dict``, under names of your choice: model, optimiser, schedule,
        scaler, loader. None is left out.

    Attributes
    ----------
    epoch, step : int
        Where the run is: the epoch that is under way, and the steps that are done before the present one.
    state : dict
        Plain data of your own, such as the best result; it is saved and comes back.

    Notes
    -----
    The states of ptcore's default generators of all devices, of Python's ``random`` and of NumPy's global generator are
    saved too. With these, and with a loader among the parts, the final weights equal those of an uninterrupted run bit
    for bit, wherever the run was stopped.

    Threads of a loader (``multiprocessing_context="thread"``) share the generators, and take their numbers in any
    order: with random numbers in the samples no two runs are equal.

    A checkpoint is saved after a step, or at the end of an epoch. A ``save`` after the last batch of an epoch marks the
    epoch as finished: a run resumed from it begins with the next epoch. So ``save`` comes last in an epoch. Values that
    one step leaves to a later step or to the end of the epoch, such as a running sum, belong in ``state``: a resumed
    epoch may have one step left, or none.

    Examples
    --------
    >>> import ptcore
    >>> from ptcore.utils.data import DataLoader
    >>> from ptcore.utils.restart import Restart, checkpoint_on_signal
    >>> net = ptcore.nn.Linear(4, 1)
    >>> optimizer = ptcore.optim.Adam(net.parameters())
    >>> loader = DataLoader(ptcore.randn(64, 4), batch_size=8, shuffle=True)
    >>> restart = Restart("run", every=5, net=net, optimizer=optimizer, loader=loader)
    >>> restart.resume()                        # nothing to resume from yet
    False
    >>> with checkpoint_on_signal(restart):
    ...     for epoch in restart.epochs(2):
    ...         for x in restart.batches(loader):
    ...             optimizer.zero_grad()
    ...             net(x).square().mean().backward()
    ...             optimizer.step()
    >>> restart.resume(), restart.epoch, restart.step
    (True, 1, 15)
    """

    def __init__(self, folder, *, keep=2, every=None, suffix=".npz", **parts):
        for name, value in (("keep", keep), ("every", 1 if every is None else every)):
            if not isinstance(value, int) or value < 1:
                raise ValueError(f"Restart: {name} must be a positive integer, got {value!r}")
        self.folder, self.keep, self.every, self.suffix = os.fspath(folder), keep, every, suffix
        self.parts = {name: part for name, part in parts.items() if part is not None}
        for name, part in self.parts.items():
            if not (hasattr(part, "state_dict") and hasattr(part, "load_state_dict")):
                raise TypeError(f"Restart: {name} must have state_dict and load_state_dict, got {type(part).__name__}")
        self.epoch = self.step = 0
        self.state = {}
        self._passed = False            # whether the batches of this epoch are exhausted
        self._stepping = False          # whether a batch was given and the next one not requested
        self._guard = None              # the active checkpoint_on_signal
        self._cleaned = False
        self._damaged = set()           # numbers of unreadable checkpoints, which do not count

    def epochs(self, number):
        """Iterate over the epochs that are left of `number`."""
        while self.epoch < number:
            yield self.epoch
            self.epoch += 1
            self._passed = False
            self._check_signal()

    def batches(self, loader):
        """Iterate over the batches that are left of a loader's pass, once in an epoch; each is a step.

        A step ends when the next batch is requested; ``every`` and signals are handled then. A loop that is left by
        ``break`` leaves its pass open: a resumed run continues with the rest of the pass.

        Raises
        ------
        ValueError
            If the loader keeps its place and is not among the parts: a resumed run would begin its pass again.
        """
        if hasattr(loader, "load_state_dict") and not any(loader is part for part in self.parts.values()):
            raise ValueError(f"batches: the {type(loader).__name__} must be one of the parts, {', '.join(self.parts)}")
        self._passed = False
        for batch in loader:
            self._stepping = True
            try:
                yield batch
            finally:                    # counts the batch of a loop that is left
                self.step += self._stepping
                self._stepping = False
            if self.every is not None and self.step % self.every == 0:
                self.save()
            self._check_signal()
        self._passed = True

    def _check_signal(self):
        if self._guard is not None:
            self._guard.check()

    def state_dict(self):
        """The contents of a checkpoint: plain data and tensors."""
        return {
            "version": 1,
            "epoch": self.epoch + self._passed,
            "step": self.step + self._stepping,         # the loader has counted this batch
            "state": self.state,
            "parts": {name: part.state_dict() for name, part in self.parts.items()},
            "random": _random_states.get_states(),
        }

    def load_state_dict(self, state_dict):
        """Restore all parts, the counters and the random generators.

        Raises
        ------
        ValueError
            If it holds other parts than this object; nothing is changed then.
        """
        version = state_dict.get("version")
        if version != 1:
            raise ValueError(f"load_state_dict: version must be 1, got {version!r}")
        saved = state_dict["parts"]
        if saved.keys() != self.parts.keys():
            want, got = (", ".join(sorted(names)) or "none" for names in (saved, self.parts))
            raise ValueError(f"load_state_dict: the parts must be those that were saved, {want}, got {got}")
        for name, part in self.parts.items():
            part.load_state_dict(saved[name])
        self.epoch, self.step, self.state = state_dict["epoch"], state_dict["step"], state_dict["state"]
        self._passed = self._stepping = False
        _random_states.set_states(state_dict["random"])

    def save(self):
        """Write a checkpoint, remove old and damaged ones, and return its path.

        The file gets its name only when it is complete, so a process that is killed meanwhile leaves the older
        checkpoints.
        """
        os.makedirs(self.folder, exist_ok=True)
        found, taken = self._found(), self._found(all_names=True)
        if not self._cleaned:           # removes files of killed processes
            for name in os.listdir(self.folder):
                if re.fullmatch(r"\.checkpoint-\d+\.\w+\.\w+\.tmp", name):
                    os.unlink(os.path.join(self.folder, name))
            self._cleaned = True
        path = self._path(taken[-1] + 1 if taken else 0)
        save(self.state_dict(), path)
        whole = [n for n in found if n not in self._damaged]
        for number in (*self._damaged.intersection(found), *whole[:max(0, len(whole) + 1 - self.keep)]):
            os.unlink(self._path(number))
        return path

    def resume(self, map_location="cpu"):
        """Continue from the newest readable checkpoint; return whether there is one.

        A damaged one is skipped with a warning.

        Parameters
        ----------
        map_location : device, str or dict, default: "cpu"
            Where to put the tensors of the file. The parts take their values to where they are; this is for those in
            ``state``.

        Raises
        ------
        ValueError
            If there are checkpoints and none can be read, or the newest readable one holds other parts.
        """
        found = self._found()
        for number in reversed(found):
            path = self._path(number)
            try:
                state = load(path, map_location)
                if not isinstance(state, dict) or "version" not in state:
                    raise ValueError("it is no checkpoint of Restart")
            except ValueError as error:
                if number == found[0]:
                    raise
                warnings.warn(f"resume: {path} is passed over: {error}", stacklevel=2)
                self._damaged.add(number)
                continue
            self.load_state_dict(state)
            return True
        return False

    def _path(self, number):
        return os.path.join(self.folder, f"checkpoint-{number:08d}{self.suffix}")

    def _found(self, all_names=False):
        """The numbers of existing checkpoints in the order of writing, or of all files with a checkpoint's name."""
        if not os.path.isdir(self.folder):
            return []
        pattern = re.compile(r"checkpoint-(\d{8,})" + re.escape(self.suffix))
        with os.scandir(self.folder) as entries:
            found = [(pattern.fullmatch(entry.name), entry) for entry in entries]
            return sorted(int(match[1]) for match, entry in found if match and (all_names or entry.is_file()))


class checkpoint_on_signal:
    """A context in which a signal ends the run after its step: with a checkpoint, and a code that asks for more.

    Batch systems send a signal some time before they end a job. Here the step is finished, ``restart.save`` called and
    ``SystemExit(code)`` raised, by ``restart.batches`` or ``restart.epochs``, or by ``check`` in a loop of your own.

    Parameters
    ----------
    restart : Restart
        Or any object with a method ``save``.
    signals : sequence of signal or its name, default: SIGTERM and SIGUSR1
        Names that a system does not know are left out.
    code : int, default: 75
        The exit status: ``EX_TEMPFAIL`` of ``sysexits.h``. Grid Engine runs a job again that exits with 99, HTCondor
        one that exits with its ``checkpoint_exit_code``, LSF with one of ``REQUEUE_EXIT_VALUES``; a script for SLURM
        asks ``scontrol requeue`` for it.

    Attributes
    ----------
    received : signal.Signals or None
        The signal that has come.

    Notes
    -----
    Batch systems signal all processes of a job. Children forked inside the context, such as worker processes, ignore
    these signals while their parent is inside, since the parent needs them to finish its step. When the parent has left
    the context or has ended, the signals end the children as usual. ``Process.terminate`` and ``Pool.terminate`` send
    the same signal: inside the context a child is ended only by ``kill``, unless the child sets ``signal.SIG_DFL`` when
    it starts. Executed programs are not affected.

    A signal that no step has handled is raised again where the context is left, by an exception too; where the signal
    ends the process, the exception is printed before.

    Where ``SystemExit`` leaves the context, the process is about to end, which may take its time (workers, files): a
    further signal ends it at once, with the same code.

    The context is entered in the main thread, as handlers of signals can only be set there.

    Examples
    --------
    >>> import os, signal
    >>> from ptcore.utils.restart import Restart, checkpoint_on_signal
    >>> restart = Restart("run")
    >>> with checkpoint_on_signal(restart, code=99) as guard:
    ...     try:
    ...         for epoch in restart.epochs(100):
    ...             for batch in restart.batches(range(10)):
    ...                 if restart.step == 15:
    ...                     os.kill(os.getpid(), signal.SIGTERM)
    ...     except SystemExit as stop:
    ...         print(f"exit with {stop.code} after step {restart.step}")
    exit with 99 after step 16
    """

    def __init__(self, restart, signals=("SIGTERM", "SIGUSR1"), code=75):
        if not hasattr(restart, "save"):
            raise TypeError(f"checkpoint_on_signal: restart must have a method save, got {type(restart).__name__}")
        if not isinstance(code, int) or not 0 <= code <= 255:
            raise ValueError(f"checkpoint_on_signal: code must be an integer from 0 to 255, got {code!r}")
        self.restart, self.code, self.received = restart, code, None
        several = (signals,) if isinstance(signals, (str, int)) else tuple(signals)
        self.signals = [number for number in map(_signal, several) if number is not None]
        if not self.signals or {"SIGKILL", "SIGSTOP"}.intersection(s.name for s in self.signals):
            raise ValueError(f"checkpoint_on_signal: signals must be some that a process can handle, got {signals!r}")
        self._acted = False
        self._stop = None

    def __enter__(self):
        import mmap

        self._parent = os.getpid()
        self._over = mmap.mmap(-1, 1)           # shared with children: 1 once the context is left
        self._former = {number: signal.signal(number, self._handle) for number in self.signals}
        if isinstance(self.restart, Restart):
            self._former_guard, self.restart._guard = self.restart._guard, self
        return self

    def __exit__(self, kind, value, trace):
        if os.getpid() != self._parent:         # a child that returns from the function in which it was forked
            return
        self._over[0] = 1
        if isinstance(self.restart, Restart):
            self.restart._guard = self._former_guard
        if value is not None and value is self._stop:
            return                  # the process is ending, and a further signal ends it with its code
        for number, former in self._former.items():
            signal.signal(number, signal.SIG_DFL if former is None else former)
        if self.received is None or self._acted:
            return
        # No step has handled the signal, so it is raised again. Where it ends the process, nobody else shows the
        # exception that leaves the context.
        if value is not None and self._former[self.received] in (None, signal.SIG_DFL):
            traceback.print_exception(value)
        signal.raise_signal(self.received)

    def _handle(self, number, frame):
        if os.getpid() == self._parent:
            self.received = signal.Signals(number)
            if self._over[0]:
                os._exit(self.code)
        elif self._over[0] or os.getppid() != self._parent:
            signal.signal(number, signal.SIG_DFL)
            signal.raise_signal(number)

    _handle.serves_children = True      # a worker keeps this handler

    def check(self):
        """Between two steps: if a signal has come, save and exit."""
        if self.received is not None and not self._acted and os.getpid() == self._parent:
            self._acted = True
            self.restart.save()
            self._stop = SystemExit(self.code)
            raise self._stop


def _signal(which):
    """The signal with a name or number; None for a name that this system lacks."""
    return getattr(signal, which, None) if isinstance(which, str) else signal.Signals(which)
