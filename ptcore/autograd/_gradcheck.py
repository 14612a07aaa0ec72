"""Numerical checks of derivatives: central differences against backward."""
import itertools
import sys
import types

from ptcore._ops.creation.creation import zeros
from ptcore._ops.creation.draws import randn
from ptcore._state import no_grad
from ptcore._tensor import Tensor
from ptcore.autograd import grad


class GradcheckError(RuntimeError):
    """Analytical and numerical derivatives differ."""


def _outputs(result):
    if isinstance(result, Tensor):
        return [result]
    return [r for r in result if isinstance(r, Tensor) and r.dtype.kind in "fc"]


def _numerical(func, inputs, k, eps):
    """Columns d outputs / d inputs[k][j] (of real and imaginary part, where complex).

    The input itself is moved, as func may hold it beside its arguments: a module's parameter, say."""
    x, args = inputs[k], list(inputs)
    if any([n > 1 and step == 0 for n, step in zip(x.shape, x.stride())]):      # its elements share memory
        args[k] = x.detach().clone()
    data = args[k].data
    columns = []
    for place in itertools.product(*map(range, x.shape)):
        value = data[place].item()
        column = []
        for step in (eps, eps * 1j) if x.dtype.is_complex else (eps,):
            sides = []
            for sign in (1, -1):
                data[place] = value + sign * step
                try:
                    with no_grad():
                        sides.append([o.clone() for o in _outputs(func(*args))])
                finally:
                    data[place] = value
            column.append([(a - b) / (2 * eps) for a, b in zip(*sides)])
        columns.append(column)
    return columns


def gradcheck(func, inputs, *, eps=1e-6, atol=1e-5, rtol=1e-3, raise_exception=True,
              nondet_tol=0.0, check_undefined_grad=True, check_grad_dtypes=False,
              check_batched_grad=False, check_batched_forward_grad=False, check_forward_ad=False,
              check_backward_ad=True, fast_mode=False, masked=None):
    """Compares the gradients of ``func`` with central differences.

    Parameters
    ----------
    func : callable
        Takes the inputs, returns a tensor or a tuple of tensors.
    inputs : Tensor or sequence
        Those with ``requires_grad`` are checked; they should be float64 or complex128.
    eps, atol, rtol : float

    Returns
    -------
    bool
        True; False instead of an exception if ``raise_exception`` is False.

    Raises
    ------
    GradcheckError
        If a derivative differs.

    Examples
    --------
    >>> import ptcore
    >>> x = ptcore.ones(2, dtype=ptcore.float64, requires_grad=True)
    >>> ptcore.autograd.gradcheck(ptcore.exp, (x,))
    True
    """
    try:
        return _check(func, inputs, eps, atol, rtol)
    except GradcheckError:
        if raise_exception:
            raise
        return False


def _check(func, inputs, eps, atol, rtol):
    inputs = [inputs] if isinstance(inputs, Tensor) else list(inputs)
    checked = [k for k, x in enumerate(inputs) if isinstance(x, Tensor) and x.requires_grad]
    if not checked:
        raise ValueError("gradcheck: at least one input must require grad")
    outputs = _outputs(func(*inputs))
    numerical = {k: _numerical(func, inputs, k, eps) for k in checked}
    for i, out in enumerate(outputs):
        if not out.requires_grad:
            for k in checked:
                for column in numerical[k]:
                    for part in column:
                        if bool((part[i].abs() > atol).any()):
                            raise GradcheckError(f"gradcheck: output {i} does not require grad "
                                                 f"but depends on input {k}")
            continue
        units = (1, 1j) if out.dtype.is_complex else (1,)
        for unit in units:
            for row in range(out.numel()):
                seed = zeros((out.numel(),), dtype=out.dtype, device=out.device)
                seed[row] = unit
                grads = grad(out, [inputs[k] for k in checked], seed.reshape(out.shape),
                             retain_graph=True, allow_unused=True)
                for k, g in zip(checked, grads):
                    _compare(i, row, k, unit, g, numerical[k], inputs[k], atol, rtol)
    return True


def _compare(i, row, k, unit, g, columns, x, atol, rtol):
    """<unit, d out_row / d x_j> from differences against the gradient's element j."""
    flat = None if g is None else g.detach().reshape(-1).tolist()
    for j, column in enumerate(columns):
        expected = []
        for part in column:
            d = part[i].reshape(-1)[row].item()
            expected.append((complex(d) * complex(unit).conjugate()).real)
        want = complex(*expected)
        got = complex(flat[j]) if flat is not None else 0j
        if not x.dtype.is_complex:
            got = complex(got.real)
        if not abs(got - want) <= atol + rtol * abs(want):
            raise GradcheckError(
                f"gradcheck: output {i}, element {row}, with respect to input {k}, element {j}: "
                f"numerical {want if x.dtype.is_complex else want.real}, analytical "
                f"{got if x.dtype.is_complex else got.real}")


def gradgradcheck(func, inputs, grad_outputs=None, *, eps=1e-6, atol=1e-5, rtol=1e-3,
                  gen_non_contig_grad_outputs=False, raise_exception=True, nondet_tol=0.0,
                  check_undefined_grad=True, check_grad_dtypes=False, check_batched_grad=False,
                  check_fwd_over_rev=False, check_rev_over_rev=True, fast_mode=False,
                  masked=False):
    """Checks second derivatives: ``gradcheck`` of the backward of ``func``.

    Parameters as in ``gradcheck``; ``grad_outputs`` are random unless given.
    """
    inputs = [inputs] if isinstance(inputs, Tensor) else list(inputs)
    outputs = [o for o in _outputs(func(*inputs)) if o.requires_grad]
    if grad_outputs is None:
        seeds = []
        for o in outputs:
            if o.dtype.is_complex:
                real, imaginary = (randn(o.shape, dtype=o.dtype.to_real(), device=o.device) for _ in range(2))
                seed = (real + 1j * imaginary).to(o.dtype)
            else:
                seed = randn(o.shape, dtype=o.dtype, device=o.device)
            seeds.append(seed.detach().requires_grad_())
    else:
        seeds = [grad_outputs] if isinstance(grad_outputs, Tensor) else list(grad_outputs)
    n = len(inputs)
    checked = [k for k, x in enumerate(inputs) if isinstance(x, Tensor) and x.requires_grad]

    def backward(*args):
        args = list(args)
        for k in checked:
            if not args[k].requires_grad:
                args[k] = args[k].detach().requires_grad_()
        from ptcore._state import enable_grad
        with enable_grad():
            results = [o for o in _outputs(func(*args[:n])) if o.requires_grad]
            found = grad(results, [args[k] for k in checked], list(args[n:]), create_graph=True,
                         allow_unused=True)
        return tuple([g for g in found if g is not None])

    if not backward(*inputs, *seeds):
        return True
    return gradcheck(backward, [*inputs, *seeds], eps=eps, atol=atol, rtol=rtol,
                     raise_exception=raise_exception)


class _CallableModule(types.ModuleType):
    """``autograd.gradcheck`` names this module and its main function, whichever way it was
    imported first."""

    def __call__(self, *args, **kwargs):
        return gradcheck(*args, **kwargs)


sys.modules[__name__].__class__ = _CallableModule
