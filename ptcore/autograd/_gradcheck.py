"""Numerical checks of derivatives: central differences against backward."""
import itertools
import sys
import types

from ptcore._errors import warn
from ptcore._ops.creation.creation import zeros
from ptcore._ops.creation.draws import randn
from ptcore._ops.functions import stack
from ptcore._state import enable_grad
from ptcore._tensor import Tensor
from ptcore.autograd import grad


class GradcheckError(RuntimeError):
    """Analytical and numerical derivatives differ."""


def _outputs(result):
    if isinstance(result, Tensor):
        return [result]
    return [r for r in result if isinstance(r, Tensor) and r.dtype.kind in "fc"]


def _own_data(inputs, k):
    """The elements of an input that may be changed, and the arguments that have it; a copy if elements share memory."""
    x, args = inputs[k], list(inputs)
    if any([n > 1 and step == 0 for n, step in zip(x.shape, x.stride())]):
        args[k] = x.detach().clone()
    return args[k].data, args


def _numerical(func, inputs, k, eps):
    """Columns d outputs / d inputs[k][j] (of real and imaginary part, if complex).

    The input itself is changed, since func may use it by another way than its arguments, such as a module's parameter.
    """
    x = inputs[k]
    data, args = _own_data(inputs, k)
    columns = []
    for place in itertools.product(*map(range, x.shape)):
        value = data[place].item()
        column = []
        for step in (eps, eps * 1j) if x.dtype.is_complex else (eps,):
            sides = []
            for sign in (1, -1):
                data[place] = value + sign * step
                try:
                    found = _outputs(func(*args))       # recorded, since func may look at what requires grad
                    sides.append([o.detach().clone() for o in found])
                finally:
                    data[place] = value
            column.append([(a - b) / (2 * eps) for a, b in zip(*sides)])
        columns.append(column)
    return columns


def gradcheck(func, inputs, *, eps=1e-6, atol=1e-5, rtol=1e-3, raise_exception=True,
              nondet_tol=0.0, check_undefined_grad=True, check_grad_dtypes=False,
              check_batched_grad=False, check_batched_forward_grad=False, check_forward_ad=False,
              check_backward_ad=True, fast_mode=False, masked=None):
    """Compares the derivatives of ``func`` with central differences.

    Parameters
    ----------
    func : callable
        Takes the inputs, returns a tensor or a tuple of tensors.
    inputs : Tensor or sequence
        Those with ``requires_grad`` are checked; they should be float64 or complex128.
    eps, atol, rtol : float
    raise_exception : bool
        False: what differs is not raised, False is returned.
    nondet_tol : float
        By how much a second backward may differ from the first.
    check_undefined_grad : bool
        Taken as in PyTorch: each output is differentiated without the others in any case.
    check_grad_dtypes : bool
        Whether gradients must have the dtypes of their inputs.
    check_batched_grad, check_batched_forward_grad : bool
        Whether a batch of cotangents, or of tangents, must give what each gives alone.
    check_forward_ad, check_backward_ad : bool
        Whether each of the two modes is checked.
    fast_mode : bool
        Compare one random combination of all elements in place of each element.
    masked : optional
        Of sparse tensors.

    Returns
    -------
    bool
        True; False instead of an exception if ``raise_exception`` is False.

    Raises
    ------
    GradcheckError
        If a derivative differs.
    ValueError
        If no input requires grad, or the requested checks contradict each other.

    Examples
    --------
    >>> import ptcore
    >>> x = ptcore.ones(2, dtype=ptcore.float64, requires_grad=True)
    >>> ptcore.autograd.gradcheck(ptcore.exp, (x,), check_forward_ad=True)
    True
    """
    if not (check_forward_ad or check_backward_ad):
        raise ValueError("gradcheck: expected at least one of check_forward_ad and check_backward_ad to be True")
    if check_batched_grad and not check_backward_ad:
        raise ValueError("gradcheck: check_batched_grad=True needs check_backward_ad=True")
    if check_batched_forward_grad and not check_forward_ad:
        raise ValueError("gradcheck: check_batched_forward_grad=True needs check_forward_ad=True")
    try:
        check = _Check(func, inputs, eps, atol, rtol)
        if fast_mode:
            check.combined(check_forward_ad, check_backward_ad)
        else:
            check.each(check_forward_ad, check_backward_ad)
        if check_backward_ad:
            check.again(nondet_tol, check_grad_dtypes)
        if check_batched_grad:
            check.batched_cotangents()
        if check_batched_forward_grad:
            check.batched_tangents()
    except GradcheckError:
        if raise_exception:
            raise
        return False
    return True


class _Check:
    """One function at one point: its inputs, its outputs, and the checks of their derivatives."""

    def __init__(self, func, inputs, eps, atol, rtol):
        self.func, self.eps, self.atol, self.rtol = func, eps, atol, rtol
        self.inputs = [inputs] if isinstance(inputs, Tensor) else list(inputs)
        self.checked = [k for k, x in enumerate(self.inputs) if isinstance(x, Tensor) and x.requires_grad]
        if not self.checked:
            raise ValueError("gradcheck expects at least one input tensor to require gradient, but none of them does")
        for k in self.checked:
            if self.inputs[k].dtype.to_real().itemsize < 8:
                warn(f"gradcheck: input {k} requires grad and is not of double precision: differences are too coarse "
                     "for it", UserWarning)
        self.outputs = _outputs(func(*self.inputs))

    def near(self, got, want):
        return abs(got - want) <= self.atol + self.rtol * abs(want)

    # -- each element ------------------------------------------------------------------------------

    def each(self, forward, backward):
        columns = {k: _numerical(self.func, self.inputs, k, self.eps) for k in self.checked}
        if backward:
            for i, out in enumerate(self.outputs):
                self.rows(i, out, columns)
        if forward:
            for k in self.checked:
                self.columns(k, columns[k])

    def rows(self, i, out, columns):
        """The gradients of output i, element by element."""
        if not out.requires_grad:
            for k in self.checked:
                if any(bool((part[i].abs() > self.atol).any()) for column in columns[k] for part in column):
                    raise GradcheckError(f"Numerical gradient for function expected to be zero: output {i} does not "
                                         f"require grad but depends on input {k}")
            return
        for unit in (1, 1j) if out.dtype.is_complex else (1,):
            for row in range(out.numel()):
                seed = zeros((out.numel(),), dtype=out.dtype, device=out.device)
                seed[row] = unit
                grads = grad(out, [self.inputs[k] for k in self.checked], seed.reshape(out.shape),
                             retain_graph=True, allow_unused=True)
                for k, g in zip(self.checked, grads):
                    self.compare_row(i, row, k, unit, g, columns[k])

    def compare_row(self, i, row, k, unit, g, columns):
        """<unit, d out_row / d x_j> from differences against the gradient's element j."""
        real = not self.inputs[k].dtype.is_complex
        flat = None if g is None else g.detach().reshape(-1).tolist()
        for j, column in enumerate(columns):
            expected = []
            for part in column:
                d = part[i].reshape(-1)[row].item()
                expected.append((complex(d) * complex(unit).conjugate()).real)
            want = complex(*expected)
            got = complex(flat[j]) if flat is not None else 0j
            if real:
                got = complex(got.real)
            if not self.near(got, want):
                raise GradcheckError(
                    f"Jacobian mismatch for output {i} with respect to input {k}, at its elements {row} and {j}: "
                    f"numerical {want.real if real else want}, analytical {got.real if real else got}")

    def columns(self, k, columns):
        """The tangents of all outputs along each element of input k."""
        x = self.inputs[k]
        for j, column in enumerate(columns):
            for unit, part in zip((1, 1j), column):
                t = zeros((x.numel(),), dtype=x.dtype, device=x.device)
                t[j] = unit
                for i, (got, want) in enumerate(zip(self.tangents({k: t.reshape(x.shape)}), part)):
                    got = [0] * want.numel() if got is None else got.detach().reshape(-1).tolist()
                    for row, (a, b) in enumerate(zip(got, want.reshape(-1).tolist())):
                        if not self.near(a, b):
                            raise GradcheckError(
                                f"Jacobian mismatch in forward mode for output {i} with respect to input {k}, at its "
                                f"elements {row} and {j}: numerical {b}, analytical {a}")

    def tangents(self, directions):
        """The tangents of all outputs along some of the inputs."""
        from ptcore.autograd import forward_ad
        with forward_ad.dual_level():
            args = [forward_ad.make_dual(x, directions[k]) if k in directions else x
                    for k, x in enumerate(self.inputs)]
            return [forward_ad.unpack_dual(y).tangent for y in _outputs(self.func(*args))]

    # -- one combination ---------------------------------------------------------------------------

    def combined(self, forward, backward):
        """<v, J u> for random u and v, for each output: by differences, by the backward and in forward mode."""
        cotangents = [_random_like(y) for y in self.outputs]
        for k in self.checked:
            u = _random_like(self.inputs[k])
            wants = [_inner(v, d) for v, d in zip(cotangents, self.along(k, u))]
            tangents = self.tangents({k: u}) if forward else ()
            for i, (y, v, want) in enumerate(zip(self.outputs, cotangents, wants)):
                if backward:
                    g = None
                    if y.requires_grad:
                        (g,) = grad(y, [self.inputs[k]], v, retain_graph=True, allow_unused=True)
                    self.compare(i, k, 0.0 if g is None else _inner(g, u), want, "")
                if forward:
                    t = tangents[i]
                    self.compare(i, k, 0.0 if t is None else _inner(v, t), want, " in forward mode")

    def along(self, k, direction):
        """Differences of all outputs along a direction of an input."""
        data, args = _own_data(self.inputs, k)
        before, sides = data.clone(), []
        for sign in (1, -1):
            data.copy_(before + sign * self.eps * direction)
            try:
                found = _outputs(self.func(*args))
                sides.append([o.detach().clone() for o in found])
            finally:
                data.copy_(before)
        return [(a - b) / (2 * self.eps) for a, b in zip(*sides)]

    def compare(self, i, k, got, want, mode):
        if not self.near(got, want):
            raise GradcheckError(f"Jacobian mismatch{mode} for output {i} with respect to input {k}, in a random "
                                 f"combination (fast mode): numerical {want}, analytical {got}")

    # -- further checks of the backward ------------------------------------------------------------

    def again(self, nondet_tol, dtypes):
        for out in self.outputs:
            if not out.requires_grad:
                continue
            seed = _random_like(out)
            inputs = [self.inputs[k] for k in self.checked]
            first, second = [grad(out, inputs, seed, retain_graph=True, allow_unused=True) for _ in range(2)]
            for k, a, b in zip(self.checked, first, second):
                if a is None:
                    continue
                if a.numel() and not bool(((a - b).abs() <= nondet_tol).all() | (a.isnan() & b.isnan()).all()):
                    raise GradcheckError("gradcheck: Backward is not reentrant, i.e., running backward with same input "
                                         "and grad_output multiple times gives different values, although analytical "
                                         "gradient matches numerical gradient. The tolerance for nondeterminism was "
                                         f"{nondet_tol}.")
                if dtypes and a.dtype is not self.inputs[k].dtype:
                    raise GradcheckError(f"gradcheck: the gradient of input {k} must have its dtype, "
                                         f"{self.inputs[k].dtype.name}, got {a.dtype.name}")

    def batched_cotangents(self):
        inputs = [self.inputs[k] for k in self.checked]
        for i, out in enumerate(self.outputs):
            if not out.requires_grad:
                continue
            seeds = [_random_like(out) for _ in range(2)]
            loop = [grad(out, inputs, v, retain_graph=True, allow_unused=True) for v in seeds]
            try:
                found = grad(out, inputs, stack(seeds), retain_graph=True, allow_unused=True, is_grads_batched=True)
            except RuntimeError as e:
                raise GradcheckError(f"gradcheck: the backward of output {i} cannot be batched: {e}") from e
            for k, got, *each in zip(self.checked, found, *loop):
                if got is not None and not self.all_near(got, stack(each)):
                    raise GradcheckError(f"gradcheck: for output {i} and input {k}, batched gradients differ from "
                                         f"those of each cotangent: got {got}, expected {stack(each)}")

    def batched_tangents(self):
        from ptcore.autograd.batch import vmap
        for k in self.checked:
            directions = [_random_like(self.inputs[k]) for _ in range(2)]
            loop = [self.tangents({k: u}) for u in directions]
            present = [i for i, t in enumerate(loop[0]) if t is not None]

            def along(u, k=k, present=present):
                found = self.tangents({k: u})
                return tuple([found[i] for i in present])
            try:
                found = vmap(along)(stack(directions))
            except RuntimeError as e:
                raise GradcheckError(f"gradcheck: tangents of input {k} cannot be batched: {e}") from e
            for i, got in zip(present, found):
                want = stack([tangents[i] for tangents in loop])
                if not self.all_near(got, want):
                    raise GradcheckError(f"gradcheck: for output {i} and input {k}, batched tangents differ from those "
                                         f"of each direction: got {got}, expected {want}")

    def all_near(self, got, want):
        return bool(((got - want).abs() <= self.atol + self.rtol * want.abs()).all())


def _random_like(x):
    if x.dtype.is_complex:
        real, imaginary = (randn(x.shape, dtype=x.dtype.to_real(), device=x.device) for _ in range(2))
        return (real + 1j * imaginary).to(x.dtype)
    return randn(x.shape, dtype=x.dtype, device=x.device)


def _inner(a, b):
    """The real inner product of two tensors; complex numbers count as pairs."""
    if a.dtype.is_complex:
        return (a.conj() * b).sum().real.item()
    return (a * (b.real if b.dtype.is_complex else b)).sum().item()


def gradgradcheck(func, inputs, grad_outputs=None, *, eps=1e-6, atol=1e-5, rtol=1e-3,
                  gen_non_contig_grad_outputs=False, raise_exception=True, nondet_tol=0.0,
                  check_undefined_grad=True, check_grad_dtypes=False, check_batched_grad=False,
                  check_fwd_over_rev=False, check_rev_over_rev=True, fast_mode=False,
                  masked=False):
    """Checks second derivatives: ``gradcheck`` of the backward of ``func``.

    Parameters
    ----------
    func, inputs
        As in ``gradcheck``, as are the parameters not listed here.
    grad_outputs : Tensor or sequence, optional
        Where the backward is taken; random unless given.
    gen_non_contig_grad_outputs : bool
        Whether random ones are not contiguous.
    check_fwd_over_rev, check_rev_over_rev : bool
        Whether the backward is differentiated in forward mode, or in reverse mode.

    Returns
    -------
    bool

    Examples
    --------
    >>> import ptcore
    >>> x = ptcore.ones(2, dtype=ptcore.float64, requires_grad=True)
    >>> ptcore.autograd.gradgradcheck(ptcore.exp, (x,), check_fwd_over_rev=True)
    True
    """
    inputs = [inputs] if isinstance(inputs, Tensor) else list(inputs)
    outputs = [o for o in _outputs(func(*inputs)) if o.requires_grad]
    if grad_outputs is None:
        seeds = []
        for o in outputs:
            seed = _random_like(o)
            if gen_non_contig_grad_outputs and seed.ndim:
                seed = stack([seed, seed], -1)[..., 0]
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
        with enable_grad():
            results = [o for o in _outputs(func(*args[:n])) if o.requires_grad]
            found = grad(results, [args[k] for k in checked], list(args[n:]), create_graph=True,
                         allow_unused=True)
        return tuple([g for g in found if g is not None])

    if not backward(*inputs, *seeds):
        return True
    return gradcheck(backward, [*inputs, *seeds], eps=eps, atol=atol, rtol=rtol, raise_exception=raise_exception,
                     nondet_tol=nondet_tol, check_undefined_grad=check_undefined_grad,
                     check_grad_dtypes=check_grad_dtypes, check_batched_grad=check_batched_grad,
                     check_forward_ad=check_fwd_over_rev, check_backward_ad=check_rev_over_rev, fast_mode=fast_mode)


class _CallableModule(types.ModuleType):
    """Makes this module callable: ``autograd.gradcheck`` names both the module and its main function."""

    def __call__(self, *args, **kwargs):
        return gradcheck(*args, **kwargs)


sys.modules[__name__].__class__ = _CallableModule
