#!/usr/bin/env python3
"""Loads damaged and hostile files:

    python tools/fuzz_files.py                  100,000 cases
    python tools/fuzz_files.py --cases 1000000 --jobs 2 --record
    python tools/fuzz_files.py --case 4711      one case again, its file written to the current folder

Case N of a seed is always the same file: one of a corpus that is made on the fly (all formats), changed at random:
bits, bytes, numbers, blocks, the end; in pickles also whole opcodes, in archives the fields of the directory, with
checksums put right again so that the damage gets past them.

A case passes if `load` (every fourth with mmap=True, every eighth after get_unsafe_globals_in_checkpoint) returns, or
raises one of the errors it documents, within SECONDS and with at most MEMORY more address space, without importing or
running anything. Workers are processes of their own, so that a crash is a result
like another. The exit status is 0 if every case passed. --record writes the figures to benchmarks/FUZZ.md.
"""
import argparse
import collections
import contextlib
import dataclasses
import datetime
import enum
import functools
import io
import json
import os
import random
import resource
import signal
import struct
import subprocess
import sys
import tempfile
import time
import warnings
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
RECORD = ROOT / "benchmarks" / "FUZZ.md"
SECONDS = 5
MEMORY = 1 << 30
CHUNK = 10_000      # cases of one worker
FORBIDDEN = ("import", "exec", "os.", "subprocess.", "socket.", "ctypes.", "pickle.find_class", "shutil.", "code.")
NUMBERS = (0, 1, 2, 127, 128, 255, 256, 32767, 65535, 1 << 16, (1 << 31) - 1, 1 << 31, (1 << 32) - 1, 1 << 32,
           1 << 56, (1 << 63) - 1, 1 << 63, (1 << 64) - 1)
NAMES = ("os system", "builtins eval", "builtins exec", "subprocess Popen", "torch._utils _rebuild_tensor_v2",
         "torch._utils _rebuild_tensor_v3", "torch._utils _rebuild_parameter", "torch FloatStorage",
         "torch.storage UntypedStorage", "torch QInt8Storage", "torch._utils _rebuild_sparse_tensor",
         "collections OrderedDict", "collections Counter", "collections defaultdict", "torch Size", "torch device",
         "__builtin__ set", "__builtin__ bytearray", "__builtin__ complex", "_codecs encode", "torch float32",
         "numpy.core.multiarray _reconstruct", "numpy.core.multiarray scalar", "numpy dtype", "numpy ndarray",
         "torch._utils _rebuild_meta_tensor_no_storage", "torch._utils _rebuild_device_tensor_from_cpu_tensor",
         "torch._tensor _rebuild_from_type_v2", "torch Tensor", "torch.nn.parameter Parameter",
         "torch.nn.modules.linear Linear", "torch.nn.modules.linear LazyLinear", "torch.nn.modules.rnn LSTM",
         "torch.optim.adam Adam", "torch.optim.lr_scheduler CyclicLR", "torch.utils.data.dataset Subset",
         "torch.storage _load_from_bytes", "torch.utils.hooks RemovableHandle", "torch.nn.functional relu",
         "torch.nn.modules.module _WrappedHook", "torch.nn.parameter UninitializedParameter", "builtins getattr",
         "torch._C _VariableFunctionsClass", "copyreg _reconstructor", "copyreg __newobj__", "builtins object",
         "datetime datetime", "datetime timezone", "decimal Decimal", "fractions Fraction", "uuid UUID",
         "pathlib PosixPath", "functools partial", "collections deque", "types SimpleNamespace", "argparse Namespace",
         "builtins range", "builtins slice", "argparse FileType", "_sitebuiltins Quitter", "io StringIO",
         *(f"{__name__} {name}" for name in ("Plain", "Slots", "Record", "Pair", "Color", "Flags", "Table", "run")))
OPCODES = [bytes([c]) for c in b"().0125NQR]abdelstu}\x81\x85\x86\x87\x88\x89\x8f\x90\x91\x93\x94"]


# -- objects ---------------------------------------------------------------------------------------

class Plain:
    pass


class Slots:
    __slots__ = ("a",)


@dataclasses.dataclass(frozen=True, slots=True)
class Record:
    a: int
    b: list


Pair = collections.namedtuple("Pair", "x y")
Color = enum.Enum("Color", "RED BLUE")
Flags = enum.Flag("Flags", "A B C")


class Table(dict):
    pass


# -- the corpus ------------------------------------------------------------------------------------

def corpus(folder):
    """[(format, bytes)]; what stays beside a format's file (shards) is put into the folder."""
    import numpy as np

    import ptcore as pt
    pt.manual_seed(0)
    base = pt.arange(24.0)
    parameter = pt.nn.Parameter(pt.ones(2, 3))
    state = {
        "w": base, "view": base[3:9].view(2, 3).t(), "bits": base.view(pt.int32)[1:3], "half": pt.ones(3).half(),
        "u": pt.ones(2, dtype=pt.uint32), "c": pt.ones(2, dtype=pt.complex64), "empty": pt.empty(0, 2), "p": parameter,
        "list": [1, -1, 2.5, None, True, "text", 10**30, ()], "tuple": (1, (2, (3, [4]))),
    }
    more = {
        **state, "meta": pt.empty(3, 2, device="meta"), "set": {1, "a"}, "bytes": b"\xff\0", "array": bytearray(b"x"),
        "np": np.arange(6).reshape(2, 3), "text": np.array(["ab", "c"]), "big": np.arange(3, dtype=">i2"), "j": 2j,
        "size": pt.Size([1, 2]), "dtype": pt.float64, "device": pt.device("cpu"), "od": collections.OrderedDict(a=1),
        "counter": collections.Counter("aab"), "dd": collections.defaultdict(list, {1: [2]}),
    }
    model = pt.nn.Sequential(pt.nn.Linear(2, 2), pt.nn.LayerNorm(2))
    optimizer = pt.optim.Adam(model.parameters())
    model(pt.ones(1, 2)).sum().backward()
    optimizer.step()
    checkpoint = {"model": model.state_dict(), "optimizer": optimizer.state_dict(), "epoch": 3}
    plain, slots, table = Plain(), Slots(), Table(k=1)
    plain.next, slots.a, table.at = [plain], table, slots
    with warnings.catch_warnings(action="ignore"):
        normed = pt.nn.utils.weight_norm(pt.nn.Linear(2, 2))
    objects = {
        "model": model, "optimizer": optimizer, "schedule": pt.optim.lr_scheduler.CyclicLR(
            pt.optim.SGD(model.parameters(), momentum=0.9), 0.1, 0.2), "lazy": pt.nn.LazyLinear(2), "normed": normed,
        "rnn": pt.nn.LSTM(2, 2), "data": pt.utils.data.TensorDataset(base), "plain": plain, "slots": slots,
        "record": Record(1, [2]), "pair": Pair(1, 2), "color": {Color.RED: Color.BLUE}, "flags": Flags.A | Flags.C,
        "when": [datetime.datetime(2020, 1, 2, tzinfo=datetime.UTC), datetime.timedelta(1)], "where": Path("a/b"),
        "partial": functools.partial(pt.nn.functional.relu, inplace=True), "many": collections.deque([1], 3),
        "range": range(3), "class": pt.nn.ReLU, "function": pt.tanh, "args": argparse.Namespace(lr=0.1),
    }
    found = []

    def add(kind, obj, name, **options):
        path = folder / name
        pt.save(obj, path, **options)
        found.append((kind, path.read_bytes()))
        path.unlink()

    add("zip", more, "a.pt")
    add("zip", checkpoint, "a.pt")
    add("zip", [base], "a.pt")
    with zipfile.ZipFile(io.BytesIO(found[0][1])) as old:
        packed = io.BytesIO()
        with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as new:
            for name in old.namelist():
                new.writestr(name, b"big" if name.endswith("byteorder") else old.read(name))
    found.append(("zip", packed.getvalue()))
    plain = {k: v for k, v in more.items() if k not in ("bits", "u")}
    add("stream", plain, "a.pt", _use_new_zipfile_serialization=False)
    add("stream", checkpoint, "a.pt", _use_new_zipfile_serialization=False)
    add("objects", objects, "a.pt")
    add("objects", [model, optimizer], "a.pt")
    inner = io.BytesIO()
    typed = pt.TypedStorage(wrap_storage=base.untyped_storage(), dtype=pt.float32, _internal=True)
    pt.save(typed, inner, _use_new_zipfile_serialization=False)
    inner = inner.getvalue()
    found.append(("pickle", b"\x80\x04]\x8c\x0ctorch._utils\x8c\x12_rebuild_tensor_v2\x93(\x8c\x0dtorch.storage"
                  b"\x8c\x10_load_from_bytes\x93B" + struct.pack("<I", len(inner)) + inner
                  + b"\x85RK\x00K\x02K\x03\x86K\x03K\x01\x86\x89ccollections\nOrderedDict\n)RtRa."))
    add("npz", checkpoint, "a.npz")
    add("npz", state, "a.npz")
    add("safetensors", state, "a.safetensors")
    add("safetensors", checkpoint, "a.safetensors")
    pt.save(checkpoint, folder / "s.safetensors", max_shard_size=16)
    index = folder / "s.safetensors.index.json"
    found.append(("index", index.read_bytes()))
    index.unlink()
    for traced in programs(pt):
        path = folder / "a.program"
        pt.jit.save(traced, path, _extra_files={"notes": "text"})
        found.append(("program", path.read_bytes()))
        path.unlink()
    return found


def programs(pt):
    """Traced programs: a module with buffers, a function with nested arguments; and a scripted module."""
    net = pt.nn.Sequential(pt.nn.Conv2d(1, 2, 3), pt.nn.BatchNorm2d(2), pt.nn.ReLU(), pt.nn.Flatten())
    yield pt.jit.trace(net, pt.randn(2, 1, 5, 5))
    yield pt.jit.trace(lambda x, more: [(x * more["a"]).sum(0), (x[1:].softmax(-1),)],
                       (pt.ones(3, 2), {"a": pt.ones(2), 1: (pt.ones(4),)}))

    def forward(self, x, names: list[str]):
        self.calls += 1
        found = {"x": [len(names)]}
        for k, name in enumerate(names):
            if name != "skip":
                x = self.inner(x).relu() * (k + 0.5)
            found[name] = [k, self.calls]
        return x, found, f"{len(names)} names"
    net = type("Net", (pt.nn.Module,), {"forward": forward})()
    net.inner, net.calls = pt.nn.Conv1d(2, 2, 1), 0
    net.register_buffer("kept", pt.ones(2), persistent=False)
    yield pt.jit.script(net)


# -- changes ---------------------------------------------------------------------------------------

def flip(rng, data):
    for _ in range(rng.choice((1, 1, 2, 4, 8))):
        data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)


def put_bytes(rng, data):
    n = rng.choice((1, 2, 4, 16))
    at = rng.randrange(len(data))
    data[at:at + n] = rng.randbytes(n)


def put_number(rng, data):
    n = rng.choice((1, 2, 4, 8))
    at = rng.randrange(len(data))
    data[at:at + n] = (rng.choice(NUMBERS) % (1 << 8 * n)).to_bytes(n, rng.choice(("little", "little", "big")))


def cut(rng, data):
    del data[rng.randrange(len(data)):]


def move_block(rng, data):
    n = rng.randrange(1, max(len(data) // 4, 2))
    source, target = rng.randrange(len(data)), rng.randrange(len(data))
    block = data[source:source + n]
    kind = rng.randrange(4)
    if kind == 0:
        del data[source:source + n]
    elif kind == 1:
        data[target:target] = block
    elif kind == 2:
        data[target:target + n] = block
    else:
        data[target:target] = block * rng.choice((2, 10, 100))


def put_opcodes(rng, data):
    """Whole opcodes at a place in a pickle."""
    parts = []
    for _ in range(rng.choice((1, 1, 2, 4, 20))):
        kind = rng.randrange(8)
        if kind < 3:
            parts.append(rng.choice(OPCODES))
        elif kind == 3:
            parts.append(b"c" + rng.choice(NAMES).replace(" ", "\n").encode() + b"\n")
        elif kind == 4:
            parts.append(rng.choice((b"h", b"q")) + bytes([rng.randrange(64)]))
        elif kind == 5:
            parts.append(b"J" + struct.pack("<i", rng.choice((0, 1, -1, 7, 2**31 - 1, -2**31))))
        elif kind == 6:
            parts.append(b"\x8a\x09" + rng.randbytes(9))
        else:
            parts.append(b"X" + struct.pack("<I", rng.choice((0, 1, 3, 2**31, 2**32 - 1))) + b"cpu")
    at = rng.randrange(len(data))
    data[at:at + rng.choice((0, 0, 1, 3))] = b"".join(parts) * rng.choice((1, 1, 1, 1, 50, 2000))


def rename(rng, data):
    """A name in a pickle becomes another one."""
    at = data.find(b"c", rng.randrange(len(data)))
    first = data.find(b"\n", at)
    end = data.find(b"\n", first + 1)
    if -1 < at < first < end:
        data[at + 1:end] = rng.choice(NAMES).replace(" ", "\n").encode()


def put_text(rng, data):
    """A number or a text in JSON or in an array's header becomes another one."""
    at = rng.randrange(len(data))
    while at < len(data) and not chr(data[at]).isdigit():
        at += 1
    end = at
    while end < len(data) and chr(data[end]).isdigit():
        end += 1
    data[at:end] = rng.choice((b"-1", b"1e400", b"[" * 50, b'"x"', b"{}", b"null", str(rng.choice(NUMBERS)).encode()))


WORDS = (b"row.add", b"inplace.add", b"%x", b"\n", b"  ", b"(", b")", b"[" * 300, b"=", b'"', b"None", b"device",
         b"nan", b"block():\n", b"method.__class__", b"os.system", b"return", b"slice(1,2,3)", b"complex(", b"dtype.",
         b"#", b"{")


def put_word(rng, data):
    """A word in the text of a graph, or in JSON, becomes another one."""
    at = rng.randrange(len(data))
    end = at + rng.choice((0, 1, 3, 12))
    data[at:end] = rng.choice(WORDS) * rng.choice((1, 1, 1, 1, 500))


ANY = (flip, put_bytes, put_number, cut, move_block)


def inside_zip(rng, data, kind):
    """Damage to one entry, the archive around it whole."""
    with zipfile.ZipFile(io.BytesIO(data)) as old:
        names = old.namelist()
        chosen = rng.choice([n for n in names if n.endswith("data.pkl")] * 3 * len(names) + names)
        out = io.BytesIO()
        method = rng.choice((zipfile.ZIP_STORED, zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED))
        with zipfile.ZipFile(out, "w", method) as new:
            for name in names:
                content = bytearray(old.read(name))
                if name == chosen and content:
                    change = rng.choice({"npz": (*ANY, put_text), "program": (*ANY, put_text, put_word, put_word)}.get(
                        kind, (*ANY, put_opcodes, put_opcodes, rename)))
                    change(rng, content)
                if name == chosen and rng.randrange(20) == 0:
                    name = rng.choice((name + "x", "../" + name, rng.choice(names)))
                new.writestr(zipfile.ZipInfo(name), bytes(content))
    return bytearray(out.getvalue())


def in_directory(rng, data):
    """Damage to a header of the archive."""
    magic = rng.choice((b"PK\1\2", b"PK\1\2", b"PK\3\4", b"PK\5\6", b"PK\6\6", b"PK\6\7"))
    at = data.find(magic, rng.randrange(len(data)))
    if at >= 0:
        at += rng.randrange(4, 46)
        n = rng.choice((1, 2, 4))
        data[at:at + n] = (rng.choice((*NUMBERS, rng.randrange(4096))) % (1 << 8 * n)).to_bytes(n, "little")


def mutated(rng, files):
    """(format, bytes) of a case."""
    kind, data = rng.choice(files)
    data = bytearray(data)
    if kind in ("zip", "npz", "program", "objects") and rng.randrange(5) < 3:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")     # two entries of one name
            data = inside_zip(rng, data, kind)
        if rng.randrange(4):
            return kind, bytes(data)
    for _ in range(rng.choice((1, 1, 1, 2, 3))):
        if not data:
            break
        choices = {"zip": (*ANY, in_directory, in_directory), "objects": (*ANY, in_directory, in_directory),
                   "pickle": (*ANY, put_opcodes, put_opcodes, rename), "npz": (*ANY, in_directory),
                   "program": (*ANY, in_directory),
                   "stream": (*ANY, put_opcodes, put_opcodes, rename),
                   "safetensors": (*ANY, put_text), "index": (*ANY, put_text)}[kind]
        rng.choice(choices)(rng, data)
    if rng.randrange(50) == 0:
        data[rng.randrange(len(data) + 1):] = rng.choice(files)[1]
    return kind, bytes(data)


# -- one worker ------------------------------------------------------------------------------------

class TooSlow(BaseException):
    pass


class Loader:
    """Loads cases and says what became of them."""

    def __init__(self, seed, folder):
        import pickle

        import ptcore
        from ptcore._errors import DeviceError, OutOfMemoryError
        self.pt, self.seed, self.folder = ptcore, seed, folder
        self.files = corpus(folder)
        self.expected = (ptcore.serialization.CorruptFileError, pickle.UnpicklingError, NotImplementedError,
                         DeviceError)
        self.failed_allocation = (MemoryError, OutOfMemoryError)
        self.names = {"zip": folder / "x.pt", "npz": folder / "x.npz", "safetensors": folder / "x.safetensors",
                      "index": folder / "x.safetensors.index.json",
                      "program": folder / "x.program"}
        self.loading, self.forbidden = False, None
        import decimal  # noqa: F401  (what the list of values of Python's library imports)
        import fractions  # noqa: F401
        import uuid  # noqa: F401

        from ptcore.serialization import _torch_names
        _torch_names.public()
        for kind, data in self.files:           # imports what loading imports
            for part in (data, data[:len(data) // 2], data[:-1]):
                self.put(kind, part)
                for mapped in (False, kind in self.names):
                    with contextlib.suppress(*self.expected):
                        self.load(kind, part, mapped=mapped, names=True)
        import unicodedata  # noqa: F401  (a header of an array is parsed as Python's literals)
        sys.addaudithook(self.heard)
        signal.signal(signal.SIGALRM, self.late)
        self.limit()

    def limit(self):
        if "ASAN_OPTIONS" in os.environ:        # AddressSanitizer takes 16 TB
            return
        with open("/proc/self/statm") as f:
            used = int(f.read().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (used + MEMORY, resource.RLIM_INFINITY))

    def heard(self, event, args):
        if self.loading and event.startswith(FORBIDDEN) and event not in ("os.listdir", "os.scandir"):
            self.forbidden = self.forbidden or f"{event} {str(args)[:100]}"

    def late(self, *args):
        raise TooSlow

    def case(self, n):
        return mutated(random.Random(f"{self.seed}/{n}"), self.files)

    def put(self, kind, data):
        """The file, for formats that are loaded from a path. What is still mapped of the last one stays whole."""
        if kind in self.names:
            self.names[kind].unlink(missing_ok=True)
            self.names[kind].write_bytes(data)

    def load(self, kind, data, mapped=False, names=False):
        if names:
            with contextlib.suppress(*self.expected):
                self.pt.serialization.get_unsafe_globals_in_checkpoint(io.BytesIO(data))
        if kind == "program":
            return list(self.pt.jit.load(self.names[kind] if mapped else io.BytesIO(data), mmap=mapped,
                                         _extra_files={}).state_dict().values())
        if kind in ("objects", "pickle"):
            return self.pt.load(io.BytesIO(data), weights_only=False)
        if kind == "stream" or (kind == "zip" and not mapped):
            return self.pt.load(io.BytesIO(data))
        return self.pt.load(self.names[kind], mmap=mapped)

    def outcome(self, n):
        """(format, what became of it, None or why it fails)."""
        kind, data = self.case(n)
        self.put(kind, data)
        self.forbidden, why = None, None
        signal.setitimer(signal.ITIMER_REAL, SECONDS)
        self.loading = True
        try:
            result = self.load(kind, data, mapped=n % 4 == 3, names=n % 8 == 0)
            self.touch(result)
            what = "loaded"
        except self.failed_allocation as error:
            what, why = type(error).__name__, f"more than {MEMORY} bytes: {error}"
        except self.expected as error:
            what = type(error).__name__
        except TooSlow:
            what, why = "TooSlow", f"more than {SECONDS} s"
        except Exception as error:
            what, why = type(error).__name__, f"{type(error).__name__}: {error}"
        finally:
            self.loading = False
            signal.setitimer(signal.ITIMER_REAL, 0)
        return kind, what, f"ran {self.forbidden}" if self.forbidden else why

    def touch(self, result):
        """Reads every tensor, so that one that leaves its memory is found."""
        stack, seen, left = [result], set(), 10_000
        while stack and left:
            left -= 1
            value = stack.pop()
            if id(value) in seen:
                continue
            seen.add(id(value))
            if isinstance(value, self.pt.Tensor):
                if not value.is_meta and 0 < value.numel() < 1 << 16:
                    value.detach().clone()
            elif isinstance(value, dict):
                stack.extend(value.values())
            elif isinstance(value, (Plain, self.pt.nn.Module, self.pt.optim.Optimizer)):
                stack.append(vars(value))
            elif isinstance(value, (list, tuple)):
                stack.extend(value)


def work(seed, first, count, progress):
    """Prints the counts of a range of cases as JSON; `progress` holds the number of the present one."""
    counts, failures = collections.Counter(), []
    with tempfile.TemporaryDirectory() as folder, open(progress, "r+b", buffering=0) as f:
        loader = Loader(seed, Path(folder))
        for n in range(first, first + count):
            f.seek(0)
            f.write(b"%20d" % n)
            kind, what, why = loader.outcome(n)
            counts[f"{kind} {what}"] += 1
            if why:
                failures.append((n, f"{kind}: {why}"))
    print(json.dumps({"counts": counts, "failures": failures}))


# -- all of them -----------------------------------------------------------------------------------

def run(cases, seed, jobs, first=0, show=lambda done: None):
    """(counts by "format outcome", failures as (case, why))."""
    counts, failures = collections.Counter(), []
    waiting = [(n, min(CHUNK, first + cases - n)) for n in range(first, first + cases, CHUNK)][::-1]
    running, done = [], 0
    with tempfile.TemporaryDirectory() as folder:
        while waiting or running:
            while waiting and len(running) < jobs:
                start, count = waiting.pop()
                progress = Path(folder) / f"{start}"
                progress.write_bytes(b"%20d" % start)
                command = [sys.executable, "-P", __file__, "--worker", str(start), str(count), str(progress), "--seed",
                           str(seed)]
                output = open(f"{progress}.out", "w+")
                running.append((subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT), start, count,
                                progress, output))
            time.sleep(0.05)
            for item in [item for item in running if item[0].poll() is not None]:
                running.remove(item)
                process, start, count, progress, output = item
                output.seek(0)
                text = output.read()
                output.close()
                if process.returncode == 0:
                    found = json.loads(text.splitlines()[-1])
                    counts.update(found["counts"])
                    failures += map(tuple, found["failures"])
                    done += count
                else:
                    at = int(progress.read_bytes())
                    failures.append((at, f"the process ended with {process.returncode}: {text[-500:]}"))
                    counts["crash"] += 1
                    if at > start:
                        waiting.append((start, at - start))
                    if at + 1 < start + count:
                        waiting.append((at + 1, start + count - at - 1))
                    done += 1
                show(done)
    return counts, failures


def present_commit():
    """Its short name, and whether files differ from it."""
    git = ["git", "describe", "--always", "--dirty"]
    return subprocess.run(git, cwd=ROOT, capture_output=True, text=True).stdout.strip() or "unknown"


def record(cases, seed, seconds, counts, failures, commit="unknown"):
    """A section of benchmarks/FUZZ.md."""
    by_kind = collections.defaultdict(collections.Counter)
    for name, n in counts.items():
        kind, _, what = name.partition(" ")
        by_kind[kind][what] += n
    outcomes = sorted({what for c in by_kind.values() for what in c})
    date = datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%d")
    crashes = sum(1 for _, why in failures if "the process ended" in why)
    with_sanitizers = " With AddressSanitizer and UBSan." if "ASAN_OPTIONS" in os.environ else ""
    lines = [f"## {date}, commit {commit}, seed {seed}", "",
             f"{cases} cases, {crashes} crashes, {len(failures) - crashes} other failures, {seconds:.0f} seconds."
             f"{with_sanitizers}", "",
             "| format | " + " | ".join(outcomes) + " |", "|---" * (len(outcomes) + 1) + "|"]
    lines += [f"| {kind} | " + " | ".join(str(by_kind[kind][what]) for what in outcomes) + " |"
              for kind in sorted(by_kind)]
    head = "" if RECORD.exists() else (
        "# Damaged and hostile files\n\nRuns of `tools/fuzz_files.py`: what became of each file.\n\n")
    with open(RECORD, "a") as f:
        f.write(head + "\n".join(lines) + "\n\n")


def main(argv=None):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cases", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--first", type=int, default=0, help="number of the first case")
    parser.add_argument("--case", type=int, help="this case alone")
    parser.add_argument("--record", action="store_true", help="write the figures to benchmarks/FUZZ.md")
    parser.add_argument("--worker", nargs=3, help=argparse.SUPPRESS)
    options = parser.parse_args(argv)
    if options.worker:
        first, count, progress = options.worker
        work(options.seed, int(first), int(count), progress)
        return 0
    if options.case is not None:
        with tempfile.TemporaryDirectory() as folder:
            loader = Loader(options.seed, Path(folder))
            kind, data = loader.case(options.case)
            Path(f"case-{options.case}.{kind}").write_bytes(data)
            print(*loader.outcome(options.case))
            return 0
    start, commit = time.monotonic(), present_commit()
    counts, failures = run(options.cases, options.seed, options.jobs, options.first,
                           lambda done: print(f"{done} of {options.cases} cases", flush=True))
    for case, why in failures[:50]:
        print(f"case {case}: {why}")
    for name, n in sorted(counts.items()):
        print(f"{name}: {n}")
    if options.record:
        record(options.cases, options.seed, time.monotonic() - start, counts, failures, commit)
    print(f"{len(failures)} of {options.cases} cases failed")
    return 1 if failures else 0


if __name__ == "__main__":
    raise SystemExit(main())
