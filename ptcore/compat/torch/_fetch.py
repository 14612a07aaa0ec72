"""``torch.utils.data._utils.fetch``: how a worker takes the items of a batch."""
__all__ = ["_IterableDatasetFetcher", "_MapDatasetFetcher"]


class _BaseDatasetFetcher:
    def __init__(self, dataset, auto_collation, collate_fn, drop_last):
        self.dataset, self.auto_collation = dataset, auto_collation
        self.collate_fn, self.drop_last = collate_fn, drop_last

    def fetch(self, possibly_batched_index):
        raise NotImplementedError("fetch")


class _IterableDatasetFetcher(_BaseDatasetFetcher):
    """Takes one item for each index from an iterable data set."""

    def __init__(self, dataset, auto_collation, collate_fn, drop_last):
        super().__init__(dataset, auto_collation, collate_fn, drop_last)
        self.dataset_iter = iter(dataset)
        self.ended = False

    def fetch(self, possibly_batched_index):
        if self.ended:
            raise StopIteration
        if not self.auto_collation:
            return self.collate_fn(next(self.dataset_iter))
        data = [item for _, item in zip(possibly_batched_index, self.dataset_iter)]
        self.ended = len(data) < len(possibly_batched_index)
        if not data or (self.drop_last and self.ended):
            raise StopIteration
        return self.collate_fn(data)


class _MapDatasetFetcher(_BaseDatasetFetcher):
    """Takes the items at given indices from a data set."""

    def fetch(self, possibly_batched_index):
        if not self.auto_collation:
            return self.collate_fn(self.dataset[possibly_batched_index])
        if getattr(self.dataset, "__getitems__", None):
            return self.collate_fn(self.dataset.__getitems__(possibly_batched_index))
        return self.collate_fn([self.dataset[i] for i in possibly_batched_index])
