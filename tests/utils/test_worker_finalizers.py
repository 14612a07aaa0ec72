"""What runs in a pass of a loader with workers."""
import gc
import sys

import numpy as np

import ptcore
from ptcore.utils.data import DataLoader, Dataset, TensorDataset


class OfEachKind(Dataset):
    def __len__(self):
        return 300

    def __getitem__(self, i):
        return [ptcore.tensor(i), ptcore.full((9000,), float(i)), ptcore.nn.Parameter(ptcore.full((9000,), float(i))),
                np.full(9000, i), str(i)]


def test_no_finalizer_of_python_runs_in_a_pass():
    """A KeyboardInterrupt that is raised inside one is lost, and the loop goes on."""
    calls = set()

    def note(frame, event, arg):
        if event == "call" and ("__del__" in frame.f_code.co_name or frame.f_code.co_filename.endswith("weakref.py")):
            calls.add(frame.f_code.co_qualname if hasattr(frame.f_code, "co_qualname") else frame.f_code.co_name)

    for dataset, options in ((OfEachKind(), {"batch_size": None, "collate_fn": list}),
                             (TensorDataset(ptcore.ones(300, 9000)), {"batch_size": 3, "collate_fn": list}),
                             (TensorDataset(ptcore.ones(300, 9000)), {"batch_size": 3})):
        loader = DataLoader(dataset, num_workers=2, persistent_workers=True, **options)
        for _ in loader:
            pass
        it = iter(loader)
        next(it)
        gc.collect()                                    # what earlier tests left is not the pass's
        gc.freeze()
        sys.setprofile(note)
        try:
            for _ in it:
                pass
        finally:
            sys.setprofile(None)
            gc.unfreeze()
    assert not calls
