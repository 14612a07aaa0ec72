"""Epochs of a DataLoader from memory: 100,000 samples of 16 numbers and a class; and with two worker processes that
stay, over samples that take 50 us of a processor each."""
import time

from . import workload

SAMPLES = 100_000


def tensors(xp):
    return xp.utils.data.TensorDataset(xp.randn(SAMPLES, 16), xp.randint(10, (SAMPLES,)))


def pairs(xp):
    """A dataset that knows nothing of batches: each sample is made, then collated."""
    class Pairs(xp.utils.data.Dataset):
        def __init__(self):
            self.x, self.y = xp.randn(SAMPLES // 10, 16), list(range(SAMPLES // 10))

        def __len__(self):
            return len(self.y)

        def __getitem__(self, i):
            return self.x[i], self.y[i]
    return Pairs()


def busy(count, *shape):
    """Samples that keep a processor for 50 us each, before they give ones."""
    def make(xp):
        class Busy(xp.utils.data.Dataset):
            def __init__(self):
                self.x = xp.ones(shape)

            def __len__(self):
                return count

            def __getitem__(self, i):
                end = time.thread_time() + 50e-6
                while time.thread_time() < end:
                    pass
                return self.x
        return Busy()
    return make


def epoch(name, dataset, target=1.25, **settings):
    def prepare(xp):
        loader = xp.utils.data.DataLoader(dataset(xp), **settings)

        def run():
            for _ in loader:
                pass
        return run
    workload("data", name, prepare, target)


epoch("TensorDataset, batch 64, 100k", tensors, batch_size=64)
epoch("TensorDataset, batch 64 shuffled, 100k", tensors, batch_size=64, shuffle=True)
epoch("TensorDataset, batch 1024 shuffled, 100k", tensors, batch_size=1024, shuffle=True)
epoch("samples one by one, batch 64, 10k", pairs, batch_size=64)
for size, shape in ("3 KB", (28, 28)), ("48 KB", (3, 64, 64)), ("600 KB", (3, 224, 224)):
    for batch in (1, 32):
        for workers in (0, 2):
            epoch(f"50 us a sample of {size}, batch {batch}, {workers or 'no'} workers, 1k", busy(1024, *shape),
                  batch_size=batch, num_workers=workers, persistent_workers=workers > 0)
