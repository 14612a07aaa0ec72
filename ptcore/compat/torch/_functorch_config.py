"""``torch._functorch.config``: settings of PyTorch's joint graphs, which are kept and have no effect."""
from ptcore.compat.torch import _settings

_settings.make(__name__, activation_memory_budget=1.0, activation_memory_budget_runtime_estimator="flops",
               activation_memory_budget_solver="dp", donated_buffer=True, functionalize_rng_ops=False,
               enable_autograd_cache=True, recompute_views=False, aggressive_recomputation=False, debug_assert=False,
               debug_partitioner=False, cse=True)
