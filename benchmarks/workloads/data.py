"""Epochs of a DataLoader from memory: 100,000 samples of 16 numbers and a class."""
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
