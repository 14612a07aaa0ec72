"""L-BFGS.

The whole history is in the state of the first parameter, under PyTorch's names: the last direction ``d`` and step
length ``t``, the differences of gradients ``old_dirs`` and of positions ``old_stps`` with the inverse of their products
``ro``, the scale ``H_diag``, ``prev_flat_grad``, ``prev_loss``, and the counts ``func_evals`` and ``n_iter``. Vectors
hold all parameters flattened, one after another, with complex numbers as pairs.
"""

from collections import namedtuple
from math import copysign, inf, nan, sqrt

import ptcore
from ptcore.optim.optimizer import Optimizer, check_nonnegative

__all__ = ["LBFGS"]

SUFFICIENT = 1e-4       # Armijo's constant
CURVATURE = 0.9         # Wolfe's constant


# A step length with the loss, the gradient there, and the slope along the direction.
Point = namedtuple("Point", "t loss grad slope")


def real(x):
    return ptcore.view_as_real(x) if x.is_complex() else x


class LBFGS(Optimizer):
    """Limited-memory BFGS.

    Parameters
    ----------
    params : iterable of Tensor
        Parameters, in one group.
    lr : float, default: 1
        The first step length of each iteration.
    max_iter : int, default: 20
        The most iterations of a step.
    max_eval : int, optional
        The most evaluations of a step; ``max_iter * 5 // 4`` if None.
    tolerance_grad : float, default: 1e-7
        A step ends where no element of the gradient is larger.
    tolerance_change : float, default: 1e-9
        A step ends where the parameters or the loss change by less.
    history_size : int, default: 100
        How many pairs of differences are remembered.
    line_search_fn : {None, "strong_wolfe"}
        How the step length is found.

    Notes
    -----
    :meth:`step` needs a closure. The direction is the two-loop recursion of J. Nocedal and S. J. Wright, Numerical
    Optimization, algorithm 7.4; the line search their algorithms 3.5 and 3.6 with cubic interpolation.

    Examples
    --------
    >>> import ptcore
    >>> w = ptcore.nn.Parameter(ptcore.tensor([4.0, -3.0]))
    >>> optimizer = ptcore.optim.LBFGS([w], line_search_fn="strong_wolfe")
    >>> def closure():
    ...     optimizer.zero_grad()
    ...     loss = ((w - 1) ** 4).sum()
    ...     loss.backward()
    ...     return loss
    >>> _ = optimizer.step(closure)
    >>> bool(((w - 1).abs() < 0.1).all())
    True
    """

    def __init__(
        self,
        params,
        lr: float = 1,
        max_iter=20,
        max_eval=None,
        tolerance_grad=1e-7,
        tolerance_change=1e-9,
        history_size=100,
        line_search_fn=None,
    ):
        check_nonnegative(**{"learning rate": lr})
        if line_search_fn is not None and not (isinstance(line_search_fn, str) and line_search_fn == "strong_wolfe"):
            raise RuntimeError(f"only 'strong_wolfe' is supported, got {line_search_fn!r}")
        if max_eval is None:
            max_eval = max_iter * 5 // 4
        super().__init__(
            params,
            {
                "lr": lr,
                "max_iter": max_iter,
                "max_eval": max_eval,
                "tolerance_grad": tolerance_grad,
                "tolerance_change": tolerance_change,
                "history_size": history_size,
                "line_search_fn": line_search_fn,
            },
        )
        if len(self.param_groups) != 1:
            raise ValueError("LBFGS doesn't support per-parameter options (parameter groups)")

    @property
    def _params(self):
        return self.param_groups[0]["params"]

    # -- the parameters as one vector -----------------------------------------------------------

    def _gradient(self):
        return ptcore.cat([
            real(ptcore.zeros_like(p) if p.grad is None else p.grad).reshape(-1) for p in self._params
        ])

    def _add(self, length, direction):
        """Moves the parameters along a direction."""
        start = 0
        for p in self._params:
            pairs = real(p)
            pairs.add_(direction[start : start + pairs.numel()].view_as(pairs) * length)
            start += pairs.numel()

    def _evaluate(self, closure):
        """(loss, gradient) at the present parameters."""
        with ptcore.enable_grad():
            loss = float(closure())
        return loss, self._gradient()

    # -- step -----------------------------------------------------------------------------------

    def step(self, closure):
        """Update the parameters by up to ``max_iter`` iterations.

        Parameters
        ----------
        closure : callable
            Clears the gradients, computes the loss and its gradients and returns the loss.

        Returns
        -------
        object
            The closure's result at the parameters as they were.
        """
        if not callable(closure):
            raise TypeError(f"LBFGS.step: closure must be callable, got {type(closure).__name__}")
        with ptcore.no_grad():
            return self._step(closure)

    def _step(self, closure):
        group = self.param_groups[0]
        state = self.state[self._params[0]]
        state.setdefault("func_evals", 0)
        state.setdefault("n_iter", 0)

        with ptcore.enable_grad():
            first = closure()
        loss, grad = float(first), self._gradient()
        evaluations = 1
        state["func_evals"] += 1
        if largest(grad) <= group["tolerance_grad"]:
            return first

        for iteration in range(1, group["max_iter"] + 1):
            state["n_iter"] += 1
            if state["n_iter"] == 1 or "d" not in state:        # not there if the first step was interrupted
                direction = -grad
                state.update(old_dirs=[], old_stps=[], ro=[], H_diag=1)
                length = min(1.0, ratio(1.0, grad.abs().sum().item())) * group["lr"]
            else:
                self._remember(state, grad, group["history_size"])
                direction = two_loops(state, grad)
                length = group["lr"]
            # what belongs together is set at once: an interrupt leaves all or nothing
            state.update(prev_flat_grad=grad.clone(), prev_loss=loss, d=direction, t=length)
            slope = grad.dot(direction).item()
            if slope > -group["tolerance_change"]:
                break

            more = 0
            if group["line_search_fn"] is not None:
                point, more = self._search(closure, direction, length, Point(0, loss, grad.clone(), slope),
                                           max(0, group["max_eval"] - evaluations))
                length, loss, grad, _ = point
                self._add(length, direction)
            else:
                self._add(length, direction)
                if iteration != group["max_iter"]:      # the next step evaluates the last point
                    loss, grad = self._evaluate(closure)
                    more = 1
            state["t"] = length
            evaluations += more
            state["func_evals"] += more
            if (
                evaluations >= group["max_eval"]
                or largest(grad) <= group["tolerance_grad"]
                or largest(direction * length) <= group["tolerance_change"]
                or abs(loss - state["prev_loss"]) < group["tolerance_change"]
            ):
                break
        return first

    @staticmethod
    def _remember(state, grad, size):
        """Adds the differences of the last step to the history."""
        y = grad - state["prev_flat_grad"]
        s = state["d"] * state["t"]
        product = y.dot(s).item()
        if product > 1e-10:
            first = int(len(state["old_dirs"]) == size)
            state.update(old_dirs=[*state["old_dirs"][first:], y], old_stps=[*state["old_stps"][first:], s],
                         ro=[*state["ro"][first:], 1.0 / product], H_diag=product / y.dot(y).item())

    # -- line search ------------------------------------------------------------------------------

    def _search(self, closure, direction, length, start, limit):
        """The point found by a strong Wolfe search, and the number of evaluations; parameters are restored."""
        origin = [p.clone() for p in self._params]
        change = self.param_groups[0]["tolerance_change"]

        def at(t):
            self._add(t, direction)
            loss, grad = self._evaluate(closure)
            for p, x in zip(self._params, origin, strict=True):
                p.copy_(x)
            return Point(t, loss, grad, grad.dot(direction).item())

        def rises(p):
            return p.loss > start.loss + SUFFICIENT * p.t * start.slope

        def flat(p):
            return abs(p.slope) <= -CURVATURE * start.slope

        before, point, count = start, at(length), 0
        while True:
            if count == limit:
                low, high = sorted((start, point), key=lambda p: p.loss)
                break
            if rises(point) or (count > 1 and point.loss >= before.loss):
                low, high = sorted((before, point), key=lambda p: p.loss)
                break
            if flat(point):
                return point, count + 1
            if point.slope >= 0:
                low, high = sorted((before, point), key=lambda p: p.loss)
                break
            bounds = point.t + 0.01 * (point.t - before.t), point.t * 10
            before, point = point, at(interpolate(before, point, *bounds))
            count += 1

        stalled = False
        scale = largest(direction)
        while count < limit and abs(high.t - low.t) * scale >= change:
            left, right = sorted((low, high), key=lambda p: p.t)
            t = interpolate(left, right, left.t, right.t)
            # A point near an end of the bracket shrinks it too little. The second such point in a row is moved inwards.
            margin = 0.1 * (right.t - left.t)
            near = min(right.t - t, t - left.t) < margin
            if near and (stalled or t >= right.t or t <= left.t):
                t = right.t - margin if abs(t - right.t) < abs(t - left.t) else left.t + margin
                near = False
            stalled = near
            point = at(t)
            count += 1
            if rises(point) or point.loss >= low.loss:
                low, high = sorted((low, point), key=lambda p: p.loss)
            else:
                if flat(point):
                    return point, count + 1
                if point.slope * (high.t - low.t) >= 0:
                    high = low
                low = point
        return low, count + 1


def largest(x):
    """The largest magnitude of a vector's elements."""
    return x.abs().max().item()


def two_loops(state, grad):
    """The descent direction: minus the history's inverse Hessian times the gradient."""
    q = -grad
    history = list(zip(state["old_dirs"], state["old_stps"], state["ro"], strict=True))
    weights = []
    for y, s, rho in reversed(history):
        weights.append(s.dot(q).item() * rho)
        q.sub_(y * weights[-1])
    q.mul_(state["H_diag"])
    for (y, s, rho), weight in zip(history, reversed(weights), strict=True):
        q.add_(s * (weight - y.dot(q).item() * rho))
    return q


def ratio(a, b):
    """A quotient of floats as tensors have it: one by zero is infinite or NaN."""
    if b:
        return a / b
    return copysign(inf, a) * copysign(1.0, b) if a else nan


def interpolate(a, b, lowest, highest):
    """The minimum, inside bounds, of the cubic through two points with their slopes.

    A straight line has none: then the bound that it falls towards.
    """
    if a.t > b.t:
        a, b = b, a
    d1 = a.slope + b.slope - ratio(3 * (a.loss - b.loss), a.t - b.t)
    square = d1 * d1 - a.slope * b.slope
    if not square >= 0:                 # no minimum, or NaN
        return (lowest + highest) / 2
    d2 = sqrt(square)
    t = b.t - (b.t - a.t) * ratio(b.slope + d2 - d1, b.slope - a.slope + 2 * d2)
    return (lowest + highest) / 2 if t != t else min(max(t, lowest), highest)
