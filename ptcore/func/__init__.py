"""Transformations of functions: gradients, Jacobians, batches; and calls of modules with other parameters."""
from ptcore.autograd.batch import vmap
from ptcore.autograd.levels import debug_unwrap
from ptcore.func._functionalize import functionalize
from ptcore.func._jvp import hessian, jacfwd, jvp, linearize
from ptcore.func._modules import functional_call, stack_module_state
from ptcore.func._vjp import grad, grad_and_value, jacrev, vjp

__all__ = ["debug_unwrap", "functional_call", "functionalize", "grad", "grad_and_value", "hessian", "jacfwd",
           "jacrev", "jvp", "linearize", "stack_module_state", "vjp", "vmap"]
