"""A small training run that test_restart.py stops in every way: prints each step and at the end a digest of all.

    python restart_run.py FOLDER [--die N WHEN] [--guard CODE] [--fork | --daemon] [--workers N]

--die N WHEN: SIGKILL itself in the Nth save of this process, "before" or "after" the file gets its name, or in the
"middle" of writing it. --guard: under checkpoint_on_signal. --fork: with a forked child that sleeps; --daemon: with one
that multiprocessing ends when its parent does. --workers: processes of the loader.
"""
import argparse
import hashlib
import multiprocessing
import os
import random
import signal
import stat
import sys
import time

import numpy as np

import ptcore as pt
from ptcore import nn
from ptcore.optim.lr_scheduler import OneCycleLR
from ptcore.utils.data import DataLoader, TensorDataset
from ptcore.utils.restart import Restart, checkpoint_on_signal

EPOCHS, STEPS = 4, 6


class Scaler:
    """Something of a user's own with a state."""

    scale = 1.0

    def state_dict(self):
        return {"scale": self.scale}

    def load_state_dict(self, state):
        self.scale = state["scale"]


def die():
    os.kill(os.getpid(), signal.SIGKILL)


def die_in_save(number, when):
    calls = {"replace": 0}
    replace, fsync = os.replace, os.fsync

    def counted_replace(*args):
        calls["replace"] += 1
        if calls["replace"] == number and when == "before":
            die()
        replace(*args)
        if calls["replace"] == number and when == "after":
            die()

    def counted_fsync(descriptor):
        is_file = stat.S_ISREG(os.fstat(descriptor).st_mode)       # the folder is synced as well
        if calls["replace"] == number - 1 and when == "middle" and is_file:
            os.ftruncate(descriptor, os.fstat(descriptor).st_size // 2)
            die()
        fsync(descriptor)

    os.replace, os.fsync = counted_replace, counted_fsync


def train(folder, announce, workers):
    """Restart and the loop over it, as a generator that runs the loop; returns the digest."""
    pt.manual_seed(7)
    random.seed(7)
    np.random.seed(7)                       # noqa: NPY002
    data = TensorDataset(pt.randn(STEPS * 8 - 3, 5), pt.randint(0, 3, (STEPS * 8 - 3,)))
    net = nn.Sequential(nn.Linear(5, 16), nn.BatchNorm1d(16), nn.ReLU(), nn.Dropout(0.3), nn.Linear(16, 3))
    optimizer = pt.optim.AdamW(net.parameters())
    schedule = OneCycleLR(optimizer, max_lr=0.05, total_steps=EPOCHS * STEPS)
    slow = pt.optim.SGD(net[0].parameters(), lr=0.01, momentum=0.9)
    steps = pt.optim.lr_scheduler.StepLR(slow, 1, gamma=0.5)
    scaler, loader = Scaler(), DataLoader(data, batch_size=8, shuffle=True, num_workers=workers,
                                          persistent_workers=workers > 0,
                                          multiprocessing_context="fork" if workers and hasattr(os, "fork") else None)
    restart = Restart(folder, every=2, net=net, optimizer=optimizer, schedule=schedule, slow=slow, steps=steps,
                      scaler=scaler, loader=loader, nothing=None)
    restart.state["losses"] = []
    announce(f"resumed {restart.resume()} at epoch {restart.epoch} step {restart.step}")

    def loop():
        for epoch in restart.epochs(EPOCHS):
            for x, y in restart.batches(loader):
                x = x + random.random() * 0.1 + pt.tensor(np.random.rand(), dtype=pt.float32)   # noqa: NPY002
                optimizer.zero_grad()
                loss = nn.functional.cross_entropy(net(x), y)
                loss.backward()
                optimizer.step()
                slow.step()
                schedule.step()
                restart.state["loss"] = loss.item()
                scaler.scale *= 1.0 + loss.item()
                announce(f"step {restart.step}")
            steps.step()
            restart.state["losses"].append((epoch, restart.state["loss"]))
            if epoch % 2:
                restart.save()
    return restart, loop, lambda: digest(net, restart, scaler, slow)


def digest(net, restart, scaler, slow):
    h = hashlib.sha256()
    for value in net.state_dict().values():
        h.update(value.numpy().tobytes())
    h.update(repr((restart.epoch, restart.step, restart.state["losses"], scaler.scale, random.random(),
                   slow.param_groups[0]["lr"], np.random.rand(), pt.rand(1).item())).encode())  # noqa: NPY002
    return h.hexdigest()


def sleep():
    print(f"child {os.getpid()}", flush=True)
    while True:
        time.sleep(60)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("folder")
    parser.add_argument("--die", nargs=2)
    parser.add_argument("--guard", type=int)
    parser.add_argument("--fork", action="store_true")
    parser.add_argument("--daemon", action="store_true")
    parser.add_argument("--workers", type=int, default=0)
    options = parser.parse_args()
    if options.die:
        die_in_save(int(options.die[0]), options.die[1])

    def announce(text):
        print(text, flush=True)
        if options.guard is not None and text.startswith("step"):
            sys.stdin.readline()            # the test says when to go on
    restart, loop, result = train(options.folder, announce, options.workers)
    if options.guard is None:
        loop()
    else:
        with checkpoint_on_signal(restart, code=options.guard):
            if options.fork and os.fork() == 0:
                sleep()
            if options.daemon:
                multiprocessing.get_context("fork").Process(target=sleep, daemon=True).start()
            loop()
    print(f"digest {result()}", flush=True)


if __name__ == "__main__":
    main()
