"""``compile`` beside ptcore's own eager calls and beside PyTorch, one thread:

    python benchmarks/compiled.py [--write] [--torch-compile]

Each row is timed in turn, the minimum of the rounds: eager, compiled, torch eager, and with ``--torch-compile``
``torch.compile`` with empty caches, whose first calls take minutes. ``--write`` replaces COMPILE.md.
"""
import argparse
import datetime
import os
import subprocess
import tempfile
import time
from pathlib import Path

import compare
import measuring

HERE = Path(__file__).parent


# -- programs of either library ---------------------------------------------------------------------------------

def few(ops, gradients):
    """One, two or four small ops over 16 elements; with gradients, the call records a history."""
    def made(lib, n):
        x, y = lib.randn(n, requires_grad=gradients), lib.randn(n)
        return {1: lambda x, y: x + y, 2: lambda x, y: lib.relu(x + y), 4: lambda x, y: lib.relu(x + y) * y - x}[ops], \
            (x, y), None
    return made


def cheap(lib, n):
    """Ten arithmetic ops."""
    a, b, c = [lib.randn(n) for _ in range(3)]

    def f(a, b, c):
        t = lib.relu(a * b + c) - a
        t = lib.relu(t * b + c) - a
        return t * c + b
    return f, (a, b, c), False


def middle(lib, n):
    a, b, c = [lib.randn(n) for _ in range(3)]
    return lambda a, b, c: lib.tanh(a * b + c) * lib.sigmoid(a - b) + c, (a, b, c), False


def rows(lib, n):
    F = lib.nn.functional
    x, b, w, g = lib.randn(n, 768), lib.randn(768), lib.randn(768), lib.randn(768)
    return lambda x, b, w, g: F.layer_norm(F.gelu(x + b) + x, (768,), w, g), (x, b, w, g), False


def root_mean_square(lib, n):
    x, w = lib.randn(n, 768), lib.randn(768)
    return lambda x, w: x * 2 * lib.rsqrt((x * 2).square().mean(-1, keepdim=True) + 1e-6) * w + x, (x, w), False


def scores(lib, n):
    """Softmax of scaled scores and a bias of 8 heads."""
    x, bias = lib.randn(4, 8, n, n), lib.randn(8, n, n)
    return lambda x, bias: lib.softmax(x * 0.125 + bias, -1) * 0.9, (x, bias), False


def classifier(lib, width):
    """Loss and gradients of an MLP; the loss alone is compiled."""
    nn, F = lib.nn, lib.nn.functional
    model = nn.Sequential(nn.Linear(16, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU(), nn.Linear(width, 4))
    x, y = lib.randn(16, 16), lib.randint(0, 4, (16,))
    return lambda x, y: F.cross_entropy(model(x), y), (x, y), model


def cells(lib, steps):
    """An LSTM cell over a sequence, and the gradients."""
    cell = lib.nn.LSTMCell(16, 32)
    xs, h, c = lib.randn(steps, 8, 16), lib.zeros(8, 32), lib.zeros(8, 32)

    def f(xs, h, c):
        for x in xs.unbind(0):
            h, c = cell(x, (h, c))
        return h.square().sum()
    return f, (xs, h, c), cell


def ode(lib, steps):
    """Midpoint steps of a learned field in float64, and the gradients."""
    nn = lib.nn
    field = nn.Sequential(nn.Linear(2, 16), nn.Tanh(), nn.Linear(16, 2)).to(lib.float64)
    x = lib.randn(8, 2, dtype=lib.float64)

    def f(x):
        for _ in range(steps):
            x = x + 0.02 * field(x + 0.01 * field(x))
        return x.square().sum()
    return f, (x,), field


def transformer(lib, width):
    """A GPT of four blocks, and the gradients."""
    nn, F = lib.nn, lib.nn.functional

    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.first, self.second = nn.LayerNorm(width), nn.LayerNorm(width)
            self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
            self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

        def forward(self, x):
            n, length, _ = x.shape
            q, k, v = [t.view(n, length, 4, -1).transpose(1, 2) for t in self.qkv(self.first(x)).chunk(3, -1)]
            y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
            x = x + self.out(y.transpose(1, 2).reshape(n, length, -1))
            return x + self.mlp(self.second(x))

    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.words, self.places = nn.Embedding(65, width), nn.Embedding(64, width)
            self.blocks, self.norm = nn.ModuleList([Block() for _ in range(4)]), nn.LayerNorm(width)

        def forward(self, text):
            x = self.words(text) + self.places.weight[:text.shape[1]]
            for block in self.blocks:
                x = block(x)
            return self.norm(x) @ self.words.weight.T
    model = Model()
    text = lib.randint(0, 65, (4, 65))
    return lambda text: F.cross_entropy(model(text[:, :-1]).flatten(0, 1), text[:, 1:].flatten()), (text,), model


def stepping(make):
    """The whole training step of a program: gradients and plain SGD."""
    def made(lib, size):
        f, given, model = make(lib, size)
        optimizer = lib.optim.SGD(model.parameters(), lr=1e-4)

        def step(*given):
            optimizer.zero_grad()
            loss = f(*given)
            loss.backward()
            optimizer.step()
            return loss
        return step, given, None
    return made


# name -> (program, its size, most of ptcore eager's time or most beyond it, most of torch eager's)
ROWS = {**{f"{ops} small op{'s' * (ops > 1)}{', with a history' * gradients}":
           (few(ops, gradients), 16, 1.0 if ops == 4 else "+0.3 us", None)
           for gradients in (False, True) for ops in (1, 2, 4)},
        "ten arithmetic ops, 1e5": (cheap, 10**5, 0.30, None), "ten arithmetic ops, 1e6": (cheap, 10**6, 0.25, None),
        "ten arithmetic ops, 1e7": (cheap, 10**7, 0.20, None),
        "tanh(a*b+c)*sigmoid(a-b)+c, 1e5": (middle, 10**5, 0.80, None),
        "tanh(a*b+c)*sigmoid(a-b)+c, 1e6": (middle, 10**6, 0.70, None),
        "tanh(a*b+c)*sigmoid(a-b)+c, 1e7": (middle, 10**7, 0.55, None),
        "gelu, add, layer norm, 512 x 768": (rows, 512, 0.85, None),
        "RMS norm, 512 x 768": (root_mean_square, 512, None, None),
        "RMS norm, 4096 x 768": (root_mean_square, 4096, None, None),
        "softmax of scores and bias, 4 x 8 x 256 x 256": (scores, 256, None, None),
        "MLP 16, the loss compiled": (classifier, 16, None, 0.07),
        "MLP 64, the loss compiled": (classifier, 64, None, None),
        "LSTM cell, 20 steps, the loss compiled": (cells, 20, None, 0.095),
        "ODE, 50 midpoint steps, the loss compiled": (ode, 50, None, 0.06),
        "GPT of 4 blocks of 128, the loss compiled": (transformer, 128, None, None),
        "MLP 16, a whole SGD step": (stepping(classifier), 16, None, 0.03),
        "MLP 64, a whole SGD step": (stepping(classifier), 64, None, 0.045),
        "LSTM cell, 20 steps, a whole SGD step": (stepping(cells), 20, None, 0.095),
        "ODE, 50 midpoint steps, a whole SGD step": (stepping(ode), 50, None, 0.06)}


def recurrent(nn):
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.lstm = nn.LSTM(8, 8)

        def forward(self, x):
            return self.lstm(x)[0]
    return Net()


# name -> a module for inference, and the sizes of its argument
FROZEN = {"perceptron of 4 layers of 16": (lambda nn: nn.Sequential(
              nn.Linear(16, 16), nn.Tanh(), nn.Linear(16, 16), nn.ReLU(), nn.Linear(16, 16), nn.ReLU(),
              nn.Linear(16, 4)),
              (4, 16)),
          "convolution, batch norm, pooling, 8 x 8": (lambda nn: nn.Sequential(
              nn.Conv2d(1, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(36, 10)),
              (2, 1, 8, 8)),
          "the same, 64 channels, 32 x 32": (lambda nn: nn.Sequential(
              nn.Conv2d(3, 64, 3), nn.BatchNorm2d(64), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(14400, 10)),
              (8, 3, 32, 32)),
          "LSTM of 8, 5 steps": (recurrent, (5, 2, 8)),
          "encoder layer of 16": (lambda nn: nn.TransformerEncoderLayer(16, 2, 32, batch_first=True), (2, 5, 16))}


def call_of(f, args, model):
    """A call of the program, with gradients if it has a model."""
    if not model:
        return lambda: f(*args)
    parameters = list(model.parameters())

    def step():
        f(*args).backward()
        for p in parameters:
            p.grad = None
    return step


def shown(us):
    """Microseconds with as many digits as small calls need."""
    return f"{us:.1f}" if us >= 10 else f"{us:.3f}"


def first_call(call):
    """Seconds of the first two calls, less what a later one takes."""
    begin = time.perf_counter()
    call()
    call()
    first = time.perf_counter() - begin
    call()
    return first


def without_grad(lib, call, model):
    """A call in which nothing is recorded, for programs without gradients; model None: gradients are its own."""
    if model is not False:
        return call

    def quiet():
        with lib.no_grad():
            return call()
    return quiet


def frozen_programs(ptcore, torch, rounds):
    """Lines of a table: modules, and programs that were frozen, without gradients."""
    head = ["module", "eager, us", "scripted, frozen", "traced, frozen", "torch, us", "torch, scripted, frozen",
            "scripted of torch's frozen"]
    lines = [f"| {' | '.join(head)} |", "|" + "---|" * len(head)]
    for name, (make, size) in FROZEN.items():
        calls = []
        for lib in (ptcore, torch):
            net, x = make(lib.nn).eval(), lib.randn(*size)
            programs = [net, lib.jit.freeze(lib.jit.script(net))]
            if lib is ptcore:
                programs.append(lib.jit.freeze(lib.jit.trace(net, x)))
            for f in programs:
                calls.append(without_grad(lib, lambda f=f, x=x: f(x), False))
                for _ in range(6):
                    calls[-1]()
        loops = [measuring.looped("f()", {"f": call}) for call in calls]
        times = [t * 1e6 for t in measuring.measure([loops], rounds, time.thread_time)[0]]
        lines.append(f"| {name} | {' | '.join([f'{t:.1f}' for t in times])} | {times[1] / times[4]:.3f} |")
        print(lines[-1], flush=True)
    return lines


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--torch-compile", action="store_true")
    parser.add_argument("--only", default="")
    args = parser.parse_args()
    if args.torch_compile:
        os.environ["TORCHINDUCTOR_CACHE_DIR"] = tempfile.mkdtemp()
        os.environ["TORCHINDUCTOR_FORCE_DISABLE_CACHES"] = "1"
    import torch

    import ptcore
    torch.set_num_threads(1)
    ptcore.set_num_threads(1)
    head = ["row", "eager, us", "compiled, us", "of eager", "at most", "torch, us", "of torch", "at most",
            "first call, ms"]
    if args.torch_compile:
        head += ["torch.compile, us", "of it", "its first call, ms"]
    lines = [f"| {' | '.join(head)} |", "|" + "---|" * len(head)]
    print("\n".join(lines))
    for name, (make, size, most_eager, most_torch) in ROWS.items():
        if args.only not in name:
            continue
        f, given, model = make(ptcore, size)
        eager = without_grad(ptcore, call_of(f, given, model), model)
        compiled = without_grad(ptcore, call_of(ptcore.compile(f), given, model), model)
        first = first_call(compiled)
        for _ in range(6):                  # past the checks that are asked one by one
            compiled()
        g, theirs_given, theirs_model = make(torch, size)
        theirs = without_grad(torch, call_of(g, theirs_given, theirs_model), theirs_model)
        calls = [eager, compiled, theirs]
        if args.torch_compile:
            theirs_compiled = without_grad(torch, call_of(torch.compile(g), theirs_given, theirs_model), theirs_model)
            their_first = first_call(theirs_compiled)
            calls.append(theirs_compiled)
        loops = [measuring.looped("f()", {"f": call}) for call in calls]
        times = [t * 1e6 for t in measuring.measure([loops], args.rounds, time.thread_time)[0]]
        cells_of = [name, shown(times[0]), shown(times[1]), f"{times[1] / times[0]:.3f}", most_eager or "",
                    shown(times[2]), f"{times[1] / times[2]:.3f}", most_torch or "", f"{first * 1e3:.1f}"]
        if args.torch_compile:
            cells_of += [f"{times[3]:.1f}", f"{times[1] / times[3]:.3f}", f"{their_first * 1e3:.0f}"]
        lines.append(f"| {' | '.join(map(str, cells_of))} |")
        print(lines[-1], flush=True)
    if not args.only:
        lines += ["", "Without gradients, for inference:", "", *frozen_programs(ptcore, torch, args.rounds)]
    if args.write:
        commit = subprocess.run(["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True, cwd=HERE)
        options = " --torch-compile" if args.torch_compile else ""
        text = ("# Compiled programs\n\n"
                f"`python benchmarks/compiled.py --write{options}`: {compare.machine()}, one thread, "
                f"{datetime.date.today()}, {commit.stdout.strip()}, torch {torch.__version__}. Each time is the "
                f"minimum of {args.rounds} rounds; a first call is the first two calls of a function.\n\n")
        (HERE / "COMPILE.md").write_text(text + "\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
