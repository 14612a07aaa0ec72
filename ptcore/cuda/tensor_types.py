"""The constructors of PyTorch's first years on CUDA devices: ``ptcore.cuda.FloatTensor(2, 3)``."""
from ptcore._ops.creation.tensor_types import types_on

TYPES = types_on("cuda", "a CUDA device", "ptcore.cuda")
globals().update(TYPES)
