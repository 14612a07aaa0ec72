"""The step of each optimizer for one element: formulas that are written once for all ways to run them.

The build writes them as C++ (``steps.h``: the loops of the CPU and CUDA's kernels). Steps that these cannot run, and
steps that an interpreter must see, run as ops here. The build reads this file too: it imports nothing of the package.
"""
import ast

__all__ = ["STEPS", "Step", "names"]

# Functions that an update may call: ops here, functions of the same names in scalar.h in C++.
FUNCTIONS = ("abs", "clamp", "maximum", "sign", "sqrt", "where")


def _assignments(text):
    return ast.parse("\n".join(line.strip() for line in text.splitlines())).body


def names(node):
    """The names in an expression."""
    return {n.id for n in ast.walk(node) if isinstance(n, ast.Name)}


class Step:
    """A step as two texts of assignments in the expression language (``table/expr.py``).

    Parameters
    ----------
    written : str
        The operands that `update` writes: the parameter `p`, then its state.
    options, counters : str
        The inputs of `numbers`: the options of a group, and the counters of a parameter, kept beside its state.
    numbers : str
        Evaluated in double precision once for each parameter: the numbers that `update` uses, and the new counters. A
        counter is rounded to the dtype of its tensor when it is stored; `single` tells that this dtype is float32.
    update : str
        Evaluated for each element; `g` is its gradient.

    Attributes
    ----------
    shared, own : tuple of str
        The numbers that `update` uses: those that are equal in a whole group, and those that depend on counters.
    """

    def __init__(self, written, options, counters, numbers, update):
        self.written, self.options, self.counters = (tuple(x.split()) for x in (written, options, counters))
        self.numbers, self.update = _assignments(numbers), _assignments(update)
        own = set(self.counters)
        for line in self.numbers:
            if names(line.value) & own:
                own.add(line.targets[0].id)
        used, known = {}, {*self.written, "g", *FUNCTIONS}
        for line in self.update:
            used.update(dict.fromkeys(sorted(names(line.value) - known)))
            known.add(line.targets[0].id)
        self.shared = tuple(n for n in used if n not in own)
        self.own = tuple(n for n in used if n in own)
        self._code = None

    def code(self):
        """`numbers` and `update`, compiled for Python."""
        if self._code is None:
            self._code = [compile(ast.Module(lines, []), "<ptcore step>", "exec")
                          for lines in (self.numbers, self.update)]
        return self._code

    def run(self, tensors, numbers):
        """The update by ops, for the written operands and the gradient; ``numbers`` are those of `shared` and `own`.

        Complex parameters are pairs of reals; half types are computed in float32 and rounded once.
        """
        from ptcore._dtype import float32
        from ptcore._ops import functions
        from ptcore._state import is_history_recorded

        if tensors[0].is_complex():
            tensors = [functions.view_as_real(x) for x in tensors]
        recorded = is_history_recorded()            # recorded ops keep what they read, which is written to here
        values = dict(zip(self.shared + self.own, numbers, strict=True))
        for name, x in zip((*self.written, "g"), tensors, strict=True):
            values[name] = x.to(float32) if x.dtype.itemsize == 2 else x.clone() if recorded and name != "g" else x
        exec(self.code()[1], {name: getattr(functions, name) for name in FUNCTIONS}, values)
        for name, x in zip(self.written, tensors, strict=False):
            x.copy_(values[name])

    def recorded(self, operands, counters, options):
        """The step of one parameter, in a form that autograd records: an option may be a tensor that requires grad.
        ``operands`` are what is written, and the gradient."""
        values = {name: _number(x) for name, x in zip(self.options, options, strict=True)}
        values.update({name: _number(c) for name, c in zip(self.counters, counters, strict=True)})
        values["single"] = any(c.dtype.itemsize == 4 for c in counters)
        exec(self.code()[0], {"sqrt": _sqrt, "power": pow, "maximum": max, "rounded": _rounded}, values)
        for name, c in zip(self.counters, counters, strict=True):
            (c.copy_ if hasattr(values[name], "dtype") else c.fill_)(values[name])
        self.run(operands, [values[n] for n in self.shared + self.own])


def _number(x):
    """An option or a counter as a number, or as a 0-d tensor if it requires grad."""
    if not getattr(x, "requires_grad", False):
        return float(x)
    return x.reshape(()).clone()                # a copy, as counters are written to


def _sqrt(x):
    return x.sqrt() if hasattr(x, "sqrt") else x**0.5


def _rounded(x, single):
    """x rounded to float32 if ``single``; a tensor is not rounded, so that its gradient is kept."""
    import struct

    return struct.unpack("f", struct.pack("f", x))[0] if single and isinstance(x, float) else x


_DIRECTION = "direction = -1 if maximize else 1\n"
_COUNTED = _DIRECTION + "step = step + 1\n"
_GRADIENT = "d = direction * g + weight_decay * p if weight_decay else direction * g\n"

_BETAS = _COUNTED + """
    rest1 = 1 - beta1
    rest2 = 1 - beta2
"""
# For Adam and its variants: decay is added to the gradient, or shrinks the parameter.
_DECAY = _BETAS + """
    decay = 0 if decoupled else weight_decay
    shrink = 1 - lr * weight_decay if decoupled else 1
"""
_CORRECTED = _DECAY + """
    correction = 1 - power(beta2, step)
    rate = lr / (1 - power(beta1, step))
    root = 1 / sqrt(correction)
"""
_AVERAGES = """
    x = p * shrink
    d = direction * g + decay * x if decay else direction * g
    m = beta1 * m + rest1 * d
    v = beta2 * v + rest2 * d * d
"""


# A new buffer is set to the gradient: `first` drops the old value, and the dampening.
_SGD = """
    keep = 0 if first else momentum
    rest = 1 if first else 1 - dampening
"""


def _sgd(state, *update):
    return Step("p " + state, "lr momentum dampening weight_decay maximize first", "", _DIRECTION + _SGD,
                _GRADIENT + "\n".join(update))


def _adam(amsgrad):
    return Step("p m v top" if amsgrad else "p m v", "lr beta1 beta2 eps weight_decay maximize decoupled", "step",
                _CORRECTED, _AVERAGES + ("""
                    top = maximum(top, v)
                    p = x - rate * m / (sqrt(top) * root + eps)
                """ if amsgrad else "p = x - rate * m / (sqrt(v) * root + eps)"))


def _rmsprop(momentum, centered):
    update = _GRADIENT + "s = alpha * s + rest * d * d\n"
    if centered:
        update += "mean = alpha * mean + rest * d\nchange = d / (sqrt(s - mean * mean) + eps)\n"
    else:
        update += "change = d / (sqrt(s) + eps)\n"
    update += "b = momentum * b + change\np = p - lr * b" if momentum else "p = p - lr * change"
    return Step("p s" + " b" * momentum + " mean" * centered, "lr alpha eps weight_decay momentum maximize", "step",
                _COUNTED + "rest = 1 - alpha", update)


STEPS = {
    "sgd": _sgd("", "p = p - lr * d"),
    "sgd_momentum": _sgd("m", "m = keep * m + rest * d", "p = p - lr * m"),
    "sgd_nesterov": _sgd("m", "m = keep * m + rest * d", "p = p - lr * (d + momentum * m)"),
    "adam": _adam(False),
    "amsgrad": _adam(True),
    "rmsprop": _rmsprop(False, False),
    "rmsprop_momentum": _rmsprop(True, False),
    "rmsprop_centered": _rmsprop(False, True),
    "rmsprop_momentum_centered": _rmsprop(True, True),
    "adadelta": Step("p s a", "lr rho eps weight_decay maximize", "step", _COUNTED + "rest = 1 - rho", _GRADIENT + """
        s = rho * s + rest * d * d
        change = sqrt(a + eps) / sqrt(s + eps) * d
        a = rho * a + rest * change * change
        p = p - lr * change
    """),
    "adagrad": Step("p s", "lr lr_decay eps weight_decay maximize", "step", _COUNTED + """
        rate = lr / (1 + (step - 1) * lr_decay)
    """, _GRADIENT + """
        s = s + d * d
        p = p - rate * d / (sqrt(s) + eps)
    """),
    "adamax": Step("p m u", "lr beta1 beta2 eps weight_decay maximize", "step", _BETAS + """
        rate = lr / (1 - power(beta1, step))
    """, _GRADIENT + """
        m = beta1 * m + rest1 * d
        u = maximum(beta2 * u, abs(d) + eps)
        p = p - rate * m / u
    """),
    "asgd": Step("p a", "lr lambd alpha t0 weight_decay maximize", "step eta mu", _COUNTED + """
        rate = eta
        shrink = 1 - lambd * eta
        share = mu
        eta = lr / power(1 + lambd * lr * step, alpha)
        mu = 1 / maximum(1, step - t0)
    """, _GRADIENT + """
        p = p * shrink - rate * d
        a = p if share == 1 else a + (p - a) * share
    """),
    "nadam": Step("p m v", "lr beta1 beta2 eps weight_decay momentum_decay maximize decoupled", "step mu_product",
                  _CORRECTED + """
        mu = beta1 * (1 - 0.5 * power(0.96, step * momentum_decay))
        following = beta1 * (1 - 0.5 * power(0.96, (step + 1) * momentum_decay))
        mu_product = mu_product * rounded(mu, single)
        of_gradient = lr * (1 - mu) / (1 - mu_product)
        of_mean = lr * following / (1 - mu_product * following)
    """, _AVERAGES + """
        p = x - (of_gradient * d + of_mean * m) / (sqrt(v) * root + eps)
    """),
    # Without the denominator until the mean square is known well enough.
    "radam": Step("p m v", "lr beta1 beta2 eps weight_decay maximize decoupled", "step", _CORRECTED + """
        longest = 2 / (1 - beta2) - 1
        length = longest - 2 * step * power(beta2, step) / correction
        known = 1 if length > 5 else 0
        share = (length - 4) * (length - 2) * longest / ((longest - 4) * (longest - 2) * length)
        scale = rate * sqrt(share) / root if known else rate
    """, _AVERAGES + """
        p = x - (scale * m / (sqrt(v) + eps) if known else scale * m)
    """),
    "rprop": Step("p last size", "shrink grow smallest largest maximize", "step", _COUNTED, """
        d = direction * g
        turn = d * last
        grown = where(turn > 0, size * grow, where(turn < 0, size * shrink, size))
        size = clamp(grown, smallest, largest)
        last = where(turn < 0, 0, d)
        p = p - sign(last) * size
    """),
}
