"""``torch._inductor.config``: settings of Inductor, which are kept and have no effect."""
from types import SimpleNamespace

from ptcore.compat.torch import _settings

_settings.make(__name__, coordinate_descent_tuning=False, max_autotune=False, max_autotune_gemm=False,
               fx_graph_cache=True, epilogue_fusion=True, shape_padding=True, freezing=False, debug=False,
               force_fuse_int_mm_with_mul=False, use_mixed_mm=True, conv_1x1_as_mm=False,
               triton=SimpleNamespace(cudagraphs=False, unique_kernel_names=True, cudagraph_trees=True),
               cpp=SimpleNamespace(threads=-1, simdlen=None))
