"""Times training steps of whole models on a CUDA device, in ptcore and in torch, in turn in one process.

    python benchmarks/gpu_training.py [--steps N]

A model is one text for both libraries, whose names are the same. A step is timed on the processor's clock between two
synchronisations, after three that warm up, as it is and captured as a CUDA graph; the losses show that all train the
same.
"""
import argparse
import gc
import importlib
import time


def gpt(xp, layers=12, width=768, heads=12, batch=8, length=1024, words=50257):
    """A step of a GPT in bfloat16 with AdamW."""
    nn, F = xp.nn, xp.nn.functional

    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.before, self.between = nn.LayerNorm(width), nn.LayerNorm(width)
            self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
            self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

        def forward(self, x):
            b, t, _ = x.shape
            qkv = self.qkv(self.before(x)).reshape(b, t, 3, heads, width // heads)
            q, k, v = qkv.permute(2, 0, 3, 1, 4).unbind(0)
            y = F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).reshape(b, t, width)
            x = x + self.out(y)
            return x + self.down(F.gelu(self.up(self.between(x))))

    class GPT(nn.Module):
        def __init__(self):
            super().__init__()
            self.tokens, self.places = nn.Embedding(words, width), nn.Embedding(length, width)
            self.blocks = nn.ModuleList([Block() for _ in range(layers)])
            self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, words, bias=False)

        def forward(self, ids):
            x = self.tokens(ids) + self.places(xp.arange(ids.shape[1], device="cuda"))
            for block in self.blocks:
                x = block(x)
            return self.head(self.norm(x))

    model = GPT().to("cuda").to(xp.bfloat16)
    ids = xp.randint(0, words, (batch, length + 1), device="cuda")
    optimizer = xp.optim.AdamW(model.parameters(), 1e-4, capturable=True)

    def step():
        optimizer.zero_grad()
        loss = F.cross_entropy(model(ids[:, :-1]).reshape(-1, words), ids[:, 1:].reshape(-1))
        loss.backward()
        optimizer.step()
        return loss
    return step


def resnet(xp, batch=64, dtype="float32"):
    """A step of a ResNet-18 with SGD."""
    nn, F = xp.nn, xp.nn.functional

    class Block(nn.Module):
        def __init__(self, channels, filters, stride):
            super().__init__()
            self.first = nn.Sequential(nn.Conv2d(channels, filters, 3, stride, 1, bias=False), nn.BatchNorm2d(filters))
            self.second = nn.Sequential(nn.Conv2d(filters, filters, 3, 1, 1, bias=False), nn.BatchNorm2d(filters))
            self.short = nn.Identity()
            if stride > 1:
                self.short = nn.Sequential(nn.Conv2d(channels, filters, 1, stride, bias=False), nn.BatchNorm2d(filters))

        def forward(self, x):
            return F.relu(self.second(F.relu(self.first(x))) + self.short(x))

    layers = [nn.Conv2d(3, 64, 7, 2, 3, bias=False), nn.BatchNorm2d(64), nn.ReLU(), nn.MaxPool2d(3, 2, 1)]
    channels = 64
    for filters, stride in ((64, 1), (64, 1), (128, 2), (128, 1), (256, 2), (256, 1), (512, 2), (512, 1)):
        layers.append(Block(channels, filters, stride))
        channels = filters
    model = nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(512, 1000))
    model = model.to("cuda").to(getattr(xp, dtype))
    images = xp.randn(batch, 3, 224, 224, device="cuda").to(getattr(xp, dtype))
    classes = xp.randint(0, 1000, (batch,), device="cuda")
    optimizer = xp.optim.SGD(model.parameters(), 0.01, momentum=0.9)

    def step():
        optimizer.zero_grad()
        loss = F.cross_entropy(model(images), classes)
        loss.backward()
        optimizer.step()
        return loss
    return step


MODELS = {
    "GPT of 124 million numbers, bfloat16": gpt,
    "ResNet-18, float32, 64 images": resnet,
    "ResNet-18, bfloat16, 128 images": lambda xp: resnet(xp, 128, "bfloat16"),
    "GPT of 4 layers of 256, bfloat16": lambda xp: gpt(xp, 4, 256, 4, 4, 64, 1000),
    "ResNet-18, bfloat16, 4 images": lambda xp: resnet(xp, 4, "bfloat16"),
}


def captured(xp, step):
    """The step as a graph."""
    graph = xp.cuda.CUDAGraph()
    with xp.cuda.graph(graph):
        loss = step()

    def replay():
        graph.replay()
        return loss
    return replay


def timed(xp, make, steps, graph):
    """Milliseconds of a step, and the last loss."""
    xp.manual_seed(0)
    step = make(xp)
    aside = xp.cuda.Stream()
    aside.wait_stream(xp.cuda.current_stream())
    with xp.cuda.stream(aside):
        for _ in range(3):
            step()
    xp.cuda.synchronize()
    if graph:
        step = captured(xp, step)
        step()
        xp.cuda.synchronize()
    start = time.perf_counter()
    for _ in range(steps):
        loss = step()
    xp.cuda.synchronize()
    return 1e3 * (time.perf_counter() - start) / steps, loss.item()


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--steps", type=int, default=10)
    options = parser.parse_args()
    print("| model | ptcore, ms | torch, ms | torch / ptcore | losses |\n|---|---|---|---|---|")
    for name, make in MODELS.items():
        for graph in (False, True):
            results = []
            for library in ("ptcore", "torch"):
                xp = importlib.import_module(library)
                results.append(timed(xp, make, options.steps, graph))
                gc.collect()
                xp.cuda.empty_cache()
            (mine, loss), (other, its_loss) = results
            print(f"| {name}{', as a graph' * graph} | {mine:.2f} | {other:.2f} | {other / mine:.2f} | {loss:.3f}, "
                  f"{its_loss:.3f} |", flush=True)


if __name__ == "__main__":
    main()
