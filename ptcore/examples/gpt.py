"""Train a character-level GPT on Python's own documentation.

    python -m ptcore.examples.gpt

trains a small transformer to predict the next character of the manual that every
Python carries (``pydoc_data.topics``), and then lets it write. Printed are the loss on
the last tenth of the text, which training never sees, and samples; written next to each
other: the curves (``gpt.png``), the samples (``gpt.txt``) and a checkpoint (``gpt.npz``),
which ``--resume`` goes on from and ``--sample-only`` writes from.
"""

import argparse
import math
import os
import sys
import time

import ptcore
from ptcore import nn
from ptcore.examples._common import Claims, device, progress_bar, pyplot
from ptcore.nn import functional as F
from ptcore.optim.lr_scheduler import LambdaLR
from ptcore.utils.data import DataLoader, Dataset, RandomSampler


def load_text():
    """The topics of Python's manual, one after another."""
    from pydoc_data.topics import topics

    return "\n\n".join(topics[name] for name in sorted(topics))


class Vocabulary:
    """The characters of a text and their numbers; rare ones share the last number."""

    def __init__(self, characters):
        self.characters = characters
        self.number = {c: i for i, c in enumerate(characters)}

    @classmethod
    def of(cls, text, least=50):
        """The characters that occur at least ``least`` times."""
        frequent = [c for c in sorted(set(text)) if text.count(c) >= least]
        return cls("".join(frequent) + "\N{REPLACEMENT CHARACTER}")

    def __len__(self):
        return len(self.characters)

    def encode(self, text):
        """The numbers of the characters, of shape (len(text),)."""
        rare = len(self) - 1
        return ptcore.tensor([self.number.get(c, rare) for c in text])

    def decode(self, numbers):
        """The text of a sequence of numbers."""
        return "".join(self.characters[i] for i in numbers)


class Windows(Dataset):
    """All runs of ``length`` characters, each with the same run one character later."""

    def __init__(self, data, length):
        if len(data) <= length:
            raise ValueError(f"{len(data)} characters hold no window of {length} + 1")
        self.data, self.length = data, length

    def __len__(self):
        return len(self.data) - self.length

    def __getitem__(self, i):
        run = self.data[i : i + self.length + 1]
        return run[:-1], run[1:]


class SelfAttention(nn.Module):
    """Causal attention of several heads."""

    def __init__(self, width, heads, dropout):
        super().__init__()
        self.heads = heads
        self.dropout = dropout
        self.query_key_value = nn.Linear(width, 3 * width)
        self.out = nn.Linear(width, width)

    def forward(self, x):
        """Mix x, of shape (N, L, width), along L."""
        n, length, width = x.shape
        q, k, v = (
            part.view(n, length, self.heads, -1).transpose(1, 2)
            for part in self.query_key_value(x).chunk(3, dim=-1)
        )
        dropout = self.dropout if self.training else 0.0
        y = F.scaled_dot_product_attention(q, k, v, dropout_p=dropout, is_causal=True)
        return self.out(y.transpose(1, 2).reshape(n, length, width))


class Block(nn.Module):
    """Attention and a perceptron, each added to what it normalised."""

    def __init__(self, width, heads, dropout):
        super().__init__()
        self.attention_norm = nn.LayerNorm(width)
        self.attention = SelfAttention(width, heads, dropout)
        self.perceptron = nn.Sequential(
            nn.LayerNorm(width),
            nn.Linear(width, 4 * width),
            nn.GELU(),
            nn.Linear(4 * width, width),
            nn.Dropout(dropout),
        )

    def forward(self, x):
        """Return a new x of the same shape (N, L, width)."""
        x = x + self.attention(self.attention_norm(x))
        return x + self.perceptron(x)


class GPT(nn.Module):
    """Logits of the next character for every position of runs of numbers (N, L)."""

    def __init__(self, vocabulary, length, layers, heads, width, dropout):
        super().__init__()
        self.length = length
        self.embedding = nn.Embedding(vocabulary, width)
        self.position = nn.Parameter(ptcore.zeros(length, width))
        self.blocks = nn.Sequential(
            *(Block(width, heads, dropout) for _ in range(layers))
        )
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, vocabulary, bias=False)
        self.head.weight = self.embedding.weight
        self.apply(self._initialise)

    @staticmethod
    def _initialise(module):
        if isinstance(module, (nn.Linear, nn.Embedding)):
            nn.init.normal_(module.weight, std=0.02)
        if isinstance(module, nn.Linear) and module.bias is not None:
            nn.init.zeros_(module.bias)

    def forward(self, numbers):
        """Return logits of shape (N, L, vocabulary) for numbers of shape (N, L)."""
        x = self.embedding(numbers) + self.position[: numbers.shape[1]]
        return self.head(self.norm(self.blocks(x)))

    @ptcore.no_grad()
    def write(self, numbers, count, temperature, generator=None):
        """Append ``count`` drawn characters to each row of numbers, (N, L)."""
        self.eval()
        for _ in range(count):
            logits = self(numbers[:, -self.length :])[:, -1] / temperature
            drawn = ptcore.multinomial(logits.softmax(-1), 1, generator=generator)
            numbers = ptcore.cat([numbers, drawn], dim=1)
        return numbers


def loss_of(model, runs, targets):
    """Mean cross entropy in nats a character."""
    return F.cross_entropy(model(runs).flatten(0, 1), targets.flatten())


@ptcore.no_grad()
def evaluate(model, data, length, device, most=64):
    """Loss over evenly spread windows of data, up to ``most`` of them."""
    model.eval()
    starts = ptcore.linspace(0, len(data) - length - 1, most).long()
    runs = data[starts[:, None] + ptcore.arange(length + 1)].to(device)
    return loss_of(model, runs[:, :-1], runs[:, 1:]).item()


def warmup_and_cosine(steps, warmup):
    """Factor of the learning rate: up in ``warmup`` steps, down to a tenth."""

    def factor(step):
        if step < warmup:
            return (step + 1) / warmup
        done = (step - warmup) / max(1, steps - warmup)
        return 0.1 + 0.45 * (1 + math.cos(math.pi * min(1.0, done)))

    return factor


def make_optimizer(model, options):
    """AdamW that decays matrices alone, and its schedule."""
    matrices = [p for p in model.parameters() if p.ndim > 1]
    others = [p for p in model.parameters() if p.ndim <= 1]
    optimizer = ptcore.optim.AdamW(
        [
            {"params": matrices, "weight_decay": options.weight_decay},
            {"params": others, "weight_decay": 0.0},
        ],
        lr=options.lr,
        betas=(0.9, 0.95),
    )
    return optimizer, LambdaLR(optimizer, warmup_and_cosine(options.steps, 50))


def train(model, parts, options, progress, state=None):
    """Train for ``options.steps`` steps; return the optimiser, schedule and history."""
    optimizer, schedule = make_optimizer(model, options)
    history = {"step": [], "training": [], "validation": []}
    if state is not None:
        optimizer.load_state_dict(state["optimizer"])
        schedule.load_state_dict(state["schedule"])
        history = state["history"]
    first = schedule.last_epoch
    data, held = parts
    windows = Windows(data, model.length)
    count = (options.steps - first) * options.batch_size
    generator = ptcore.Generator().manual_seed(options.seed + first)
    sampler = RandomSampler(windows, True, max(1, count), generator=generator)
    loader = DataLoader(windows, batch_size=options.batch_size, sampler=sampler)
    loss_from = ptcore.compile(loss_of) if options.compile else loss_of
    steps = progress(range(first, options.steps), unit="step")
    running = None
    for step, (runs, targets) in zip(steps, loader, strict=False):
        model.train()
        runs, targets = runs.to(options.device), targets.to(options.device)
        optimizer.zero_grad()
        loss = loss_from(model, runs, targets)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        schedule.step()
        value = loss.item()
        running = value if running is None else 0.95 * running + 0.05 * value
        if (step + 1) % options.every == 0 or step + 1 == options.steps:
            history["step"].append(step + 1)
            history["training"].append(running)
            history["validation"].append(
                evaluate(model, held, model.length, options.device)
            )
            steps.set_postfix(
                loss=f"{running:.3f}", validation=f"{history['validation'][-1]:.3f}"
            )
    return optimizer, schedule, history


def save_checkpoint(path, model, vocabulary, shape, state):
    """Write everything that is needed to go on or to write."""
    ptcore.save(
        {
            "model": model.state_dict(),
            "characters": vocabulary.characters,
            "shape": shape,
            **state,
        },
        path,
    )


def load_checkpoint(path, where):
    """Return (model, vocabulary, all that was saved)."""
    saved = ptcore.load(path, map_location=where)
    vocabulary = Vocabulary(saved["characters"])
    model = GPT(len(vocabulary), **saved["shape"]).to(where)
    model.load_state_dict(saved["model"])
    return model, vocabulary, saved


def write_samples(path, model, vocabulary, options):
    """Let the model write; print and keep what it wrote."""
    start = vocabulary.encode(options.prompt).to(options.device)
    generator = ptcore.Generator(options.device).manual_seed(options.seed)
    rows = start.repeat(options.samples, 1)
    rows = model.write(rows, options.characters, options.temperature, generator)
    texts = [vocabulary.decode(row) for row in rows.tolist()]
    text = "\n\n--------\n\n".join(texts)
    with open(path, "w", encoding="utf-8") as file:
        file.write(text + "\n")
    print(text)


def plot(path, history):
    """Write the curves as a PNG."""
    plt = pyplot("gpt")
    figure, axes = plt.subplots(figsize=(6, 4), layout="constrained")
    for name in ("training", "validation"):
        axes.plot(history["step"], history[name], label=name)
    axes.set(xlabel="step", ylabel="nats a character", title="character-level GPT")
    axes.legend()
    figure.savefig(path, dpi=120)
    plt.close(figure)


def parse_arguments(argv=None):
    """Options of the command line."""
    parser = argparse.ArgumentParser(
        prog="python -m ptcore.examples.gpt", description=(__doc__ or "").partition("\n")[0]
    )
    add = parser.add_argument
    add("--steps", type=int, default=800)
    add("--batch-size", type=int, default=24)
    add("--length", type=int, default=64, help="characters that the model looks at")
    add("--layers", type=int, default=4)
    add("--heads", type=int, default=4)
    add("--width", type=int, default=128)
    add("--dropout", type=float, default=0.0)
    add("--lr", type=float, default=2e-3, help="learning rate of AdamW at its highest")
    add("--weight-decay", type=float, default=0.1)
    add("--every", type=int, default=50, help="steps between two looks at the held text")
    add("--seed", type=int, default=0)
    add("--text", help="a UTF-8 file to learn from instead of Python's manual")
    add("--prompt", default="The ", help="how samples begin")
    add("--samples", type=int, default=2)
    add("--characters", type=int, default=300, help="length of each sample")
    add("--temperature", type=float, default=0.8)
    add("--device", type=device, default="cpu", help="such as cpu or cuda")
    add("--threads", type=int, help="number of threads (does not change results)")
    add("--compile", action="store_true", help="capture the loss with ptcore.compile")
    add("--resume", action="store_true", help="go on from the checkpoint in --output")
    add("--sample-only", action="store_true", help="write from the checkpoint")
    add("--output", default=".", help="folder of gpt.png, gpt.txt and gpt.npz")
    add("--quiet", action="store_true", help="no progress bar")
    options = parser.parse_args(argv)
    options.claims = Claims(parser, options)
    for name in ("steps", "batch_size", "length", "samples", "every"):
        if getattr(options, name) < 1:
            parser.error(f"--{name.replace('_', '-')} must be at least 1")
    if not options.prompt or options.temperature <= 0:
        parser.error("--prompt must not be empty, --temperature must be positive")
    return options


def main(argv=None):
    """Run the example; return a dictionary of the results."""
    options = parse_arguments(argv)
    if options.threads is not None:
        ptcore.set_num_threads(options.threads)
    os.makedirs(options.output, exist_ok=True)
    checkpoint, picture, samples = (
        os.path.join(options.output, name) for name in ("gpt.npz", "gpt.png", "gpt.txt")
    )
    ptcore.manual_seed(options.seed)
    if options.sample_only:
        model, vocabulary, saved = load_checkpoint(checkpoint, options.device)
        write_samples(samples, model, vocabulary, options)
        return {"history": saved["history"], "status": 0}

    progress = progress_bar("gpt", options.quiet)
    start = time.perf_counter()
    if options.text is None:
        text = load_text()
    else:
        with open(options.text, encoding="utf-8") as file:
            text = file.read()
    saved = None
    if options.resume:
        model, vocabulary, saved = load_checkpoint(checkpoint, options.device)
        shape = saved["shape"]
    else:
        vocabulary = Vocabulary.of(text)
        shape = {
            name: getattr(options, name)
            for name in ("length", "layers", "heads", "width", "dropout")
        }
        model = GPT(len(vocabulary), **shape).to(options.device)
    data = vocabulary.encode(text)
    cut = len(data) * 9 // 10
    weights = sum(p.numel() for p in model.parameters())
    print(f"{len(data):,} characters, {len(vocabulary)} kinds, {weights:,} weights")

    optimizer, schedule, history = train(
        model, (data[:cut], data[cut:]), options, progress, saved
    )
    state = {
        "optimizer": optimizer.state_dict(),
        "schedule": schedule.state_dict(),
        "history": history,
    }
    save_checkpoint(checkpoint, model, vocabulary, shape, state)
    plot(picture, history)
    write_samples(samples, model, vocabulary, options)
    loss = history["validation"][-1]
    print(f"\n{loss / math.log(2):.3f} bits a character")
    options.claims.claim("held-out loss in nats a character", loss, high=1.5)
    print(f"wrote {picture}, {samples} and {checkpoint}")
    print(f"{time.perf_counter() - start:.1f} s")
    return {"history": history, "loss": loss, "status": options.claims.status}


if __name__ == "__main__":
    sys.exit(main()["status"])
