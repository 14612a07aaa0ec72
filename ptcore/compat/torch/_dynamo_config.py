"""``torch._dynamo.config``: settings of Dynamo, which are kept and have no effect."""
from ptcore.compat.torch import _settings

_settings.make(__name__, automatic_dynamic_shapes=True, assume_static_by_default=True, cache_size_limit=8,
               recompile_limit=8, accumulated_cache_size_limit=256, capture_scalar_outputs=False,
               capture_dynamic_output_shape_ops=False, dynamic_shapes=True, optimize_ddp=True, suppress_errors=False,
               verbose=False, guard_nn_modules=True, inline_inbuilt_nn_modules=True,
               allow_unspec_int_on_nn_module=False)
