"""``vmap``: runs a function of samples once on all of them.

``Batcher`` is the interpreter. Inside, a sample is a stand-in whose payload holds the stack of all samples; the first
dim of the stack is hidden. The row of an op says how the op runs on stacks (``_ops/batching.py``).
"""
import functools

from ptcore._errors import at_users_line, here
from ptcore._ops import batching, decompositions, row
from ptcore._ops.call.batched import Batched, Batching, Shared, sample_of, shared_of
from ptcore._ops.calling import run
from ptcore._ops.creation.creation import eye, zeros
from ptcore._ops.functions import cat, stack
from ptcore._random import get_states, set_states
from ptcore._subclass import carried_by, savable
from ptcore._tensor import Tensor
from ptcore._trees.tree import broadcast_leaves, tree_flatten, tree_leaves, tree_unflatten

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

INPLACE = 1
RANDOMNESS = ("error", "different", "same")


class Batcher(Batching):
    """Runs ops on stand-ins of a sample. The payload of a stand-in holds the stack of all samples.

    Attributes
    ----------
    size : int
        The number of samples.
    randomness : {"error", "different", "same"}
        How ops draw random numbers: raise, draw for each sample, or draw once for all.
    """

    def __init__(self, size, randomness="error"):
        self.size, self.randomness = size, randomness

    def sample(self, stack):
        """The stand-in of a stack's samples."""
        return sample_of(stack, self)

    def lift(self, x):
        """A stand-in for a tensor that is the same for all samples."""
        return shared_of(x, self)

    def value(self, x):
        """The payload's value: a ``Batched``, or a tensor that all samples share."""
        payload = carried_by(x, self)
        return x if payload is None else payload.tensor if type(payload) is Shared else payload

    def call(self, op, args, out, variant):
        own = row(op)
        if out is not None:
            raise RuntimeError(f"{own.name}: out= cannot be batched{here()}")
        if own.kind in ("composite", "custom") and own.batch == "decompose":
            return NotImplemented
        values = self.values(args)
        if own.random and own.kind != "composite":
            result = self.drawn(own, values)
        else:
            result = batching.call(op, values, variant == INPLACE)
        if result is NotImplemented:
            if own.kind == "composite":
                return result
            with self:
                return decompositions.function(own.name)(*args)
        if variant == INPLACE:
            return args[0]
        return self.samples(result, args)

    def values(self, args):
        found = []
        for x in args:
            if isinstance(x, Tensor):
                x = self.value(x)
            elif type(x) is tuple or type(x) is list:
                x = type(x)(self.values(x))
            found.append(x)
        return tuple(found)

    def samples(self, result, args):
        """A result as the samples see it. A tensor that all samples share becomes a stand-in if an argument is one,
        since its history begins there."""
        if isinstance(result, Batched):
            return sample_of(result.tensor, self)
        if isinstance(result, (tuple, list)):
            return tuple([self.samples(x, args) for x in result])
        return self.lift(result) if isinstance(result, Tensor) and self.owns(args) else result

    def owns(self, args):
        """Whether a stand-in of this interpreter is among the arguments."""
        return any(self.owns(x) if isinstance(x, (tuple, list)) else carried_by(x, self) is not None for x in args)

    needs_setup_context = True

    def custom(self, cls, args):
        """Runs a custom function on stand-ins."""
        from ptcore.autograd import _batch_function
        return _batch_function.run(self, cls, args)

    # -- random numbers ----------------------------------------------------------------------------

    def drawn(self, own, args):
        """An op that draws random numbers: for each sample separately, or the same numbers for all samples.
        """
        if self.randomness == "error":
            raise RuntimeError(f"vmap: called random operation {own.called or own.name} while in randomness error "
                               "mode. Please either use the 'same' or 'different' randomness flags on vmap or perform "
                               "the randomness operation out of vmap" + here())
        batched = any(isinstance(x, Batched) for x in args)
        if self.randomness == "same":
            if not batched:
                return run(own.name, args)
            return self.one_by_one(own, args, same=True)
        spec = [a for a in own.args if a.name not in (own.select or ())]
        shape = next((k for k, a in enumerate(spec) if a.letter == "z"), None)
        if shape is not None and not own.name.startswith("randperm") and not batched:
            args = list(args)
            args[shape] = (self.size, *args[shape])
            return Batched(run(own.name, tuple(args)), self)
        if own.name in EACH_ELEMENT:
            args = [batching.spread(x, self.size) if a.is_tensor else x for a, x in zip(spec, args)]
            return _batched(run(own.name, tuple(args)), self)
        return self.one_by_one(own, args)

    def one_by_one(self, own, args, same=False):
        generator = args[-1] if hasattr(args[-1], "get_offset") else None
        # the op may draw from the generator of any device
        start, go_to = (get_states(), set_states) if generator is None else (generator._position(), generator._go_to)
        results = []
        for k in range(self.size):
            if same:
                go_to(start)
            results.append(run(own.name, tuple([x.tensor[k] if isinstance(x, Batched) else x for x in args])))
        if isinstance(results[0], tuple):
            return tuple([Batched(stack(list(parts)), self) for parts in zip(*results)])
        return Batched(stack(results), self)


# Ops that draw independent numbers for each element of their tensors.
EACH_ELEMENT = {"bernoulli_of", "poisson_of", "binomial_of", "dropout_masked", "rrelu_noise"}


def _batched(result, owner):
    if isinstance(result, tuple):
        return tuple([Batched(x, owner) for x in result])
    return Batched(result, owner)


# -- vmap --------------------------------------------------------------------------------------------

def name_of(func):
    """A function's name, for errors."""
    if hasattr(func, "__name__"):
        return func.__name__
    return f"functools.partial({name_of(func.func)}, ...)" if isinstance(func, functools.partial) else repr(func)


def vmap(func, in_dims: "Any" = 0, out_dims: "Any" = 0, randomness="error", *, chunk_size: "Any" = None) -> "Any":
    """Wraps ``func``: the wrapper runs it once for all samples along a dim of its arguments.

    Inside, tensors have the shape of one sample. Python code that depends on their values, such as a branch, is
    refused.

    Parameters
    ----------
    func : callable
        Takes and returns trees (nested tuples, lists, dictionaries) of tensors.
    in_dims : int, None or tree, default: 0
        The mapped dim of each argument; None: it is the same for all samples. A tree that has the arguments' first
        levels stands for all that is below.
    out_dims : int, None or tree, default: 0
        Where the mapped dim goes in each output; None: the output does not depend on the sample.
    randomness : {"error", "different", "same"}, default: "error"
        How ops draw random numbers: raise, draw for each sample, or draw the same for all.
    chunk_size : int, optional
        The most samples to run at once; None: all of them.

    Returns
    -------
    callable

    Raises
    ------
    ValueError
        If ``in_dims`` or ``out_dims`` does not fit the arguments or outputs, sizes of mapped dims differ, there is
        nothing to map, or ``chunk_size`` is less than 1.
    RuntimeError
        If ``randomness`` is another word, a random op is met with "error", or a batched value would be written to a
        tensor that all samples share.

    Examples
    --------
    >>> import ptcore
    >>> x, y = ptcore.arange(6.).reshape(3, 2), ptcore.ones(3, 2)
    >>> ptcore.vmap(ptcore.dot)(x, y)
    tensor([1., 5., 9.])
    >>> ptcore.vmap(ptcore.dot, in_dims=(0, None))(x, y[0])
    tensor([1., 5., 9.])
    """
    if randomness not in RANDOMNESS:
        raise RuntimeError(f"Only allowed values for randomness are 'error', 'different', or 'same'. Got {randomness}")
    if chunk_size is not None and not chunk_size > 0:
        raise ValueError(f"vmap: chunk_size should be None or greater than 0. (got {chunk_size})")

    @functools.wraps(func, updated=())
    def wrapped(*args, **kwargs):
        return mapped(func, in_dims, out_dims, randomness, chunk_size, args, kwargs)
    return wrapped


def mapped(func, in_dims, out_dims, randomness, chunk_size, args, kwargs):
    if not isinstance(out_dims, int):
        for d in tree_leaves(out_dims):
            if d is not None and not isinstance(d, int):
                raise ValueError(f"vmap({name_of(func)}, ..., out_dims={out_dims}): `out_dims` must be an int, None or "
                                 "a python collection of ints representing where in the outputs the vmapped dimension "
                                 "should appear.")
    flat, spec, dims, size = read_inputs(func, in_dims, args)
    if chunk_size is None or chunk_size >= size:
        outputs, out_spec, _ = _run(func, flat, spec, dims, size, out_dims, randomness, kwargs)
        return tree_unflatten(outputs, out_spec)
    return _in_chunks(func, flat, spec, dims, size, out_dims, randomness, chunk_size, kwargs)


@at_users_line
def read_inputs(func, in_dims, args):
    """The leaves of the arguments, their structure, the mapped dim of each, and the size of that dim."""
    def called():
        return f"vmap({name_of(func)}, in_dims={in_dims}, ...)(<inputs>)"

    if not isinstance(in_dims, (int, tuple)):
        raise ValueError(f"{called()}: expected `in_dims` to be int or a (potentially nested) tuple matching the "
                         f"structure of inputs, got: {type(in_dims)}.")
    if not args:
        raise ValueError(f"vmap({name_of(func)})(<inputs>): got no inputs. Maybe you forgot to add inputs, or you are "
                         "trying to vmap over a function with no inputs. The latter is unsupported.")
    flat, spec = tree_flatten(args)
    dims = broadcast_leaves(in_dims, spec)
    if dims is None:
        raise ValueError(f"{called()}: in_dims is not compatible with the structure of `inputs`. in_dims has structure "
                         f"{tree_flatten(in_dims)[1]} but inputs has structure {spec}.")
    sizes = []
    for i, (x, d) in enumerate(zip(flat, dims)):
        if d is None:
            continue
        if not isinstance(d, int):
            raise ValueError(f"{called()}: Got in_dim={d} for an input but in_dim must be either an integer dimension "
                             "or None.")
        if not isinstance(x, Tensor):
            raise ValueError(f"{called()}: Got in_dim={d} for an input but the input is of type {type(x)}. We cannot "
                             "vmap over non-Tensor arguments, please use None as the respective in_dim")
        if not -x.ndim <= d < x.ndim:
            raise ValueError(f"{called()}: Got in_dim={d} for some input, but that input is a Tensor of "
                             f"dimensionality {x.ndim} so expected in_dim to satisfy -{x.ndim} <= in_dim < {x.ndim}.")
        dims[i] = d % x.ndim
        sizes.append(x.shape[dims[i]])
    if not sizes:
        raise ValueError("vmap: Expected at least one Tensor to vmap over")
    if any(n != sizes[0] for n in sizes):
        raise ValueError("vmap: Expected all tensors to have the same size in the mapped dimension, got sizes "
                         f"{sizes} for the mapped dimension")
    return flat, spec, dims, sizes[0]


def _run(func, flat, spec, dims, size, out_dims, randomness, kwargs):
    """The flat outputs with the mapped dim in place, their structure, and the mapped dim of each."""
    stacks = [x.movedim(d, 0) if d else x for x, d in zip(flat, dims)]
    with Batcher(size, randomness) as batcher:
        samples = [x if d is None else batcher.sample(x) for x, d in zip(stacks, dims)]
        result = func(*tree_unflatten(samples, spec), **kwargs)
        found, out_spec = tree_flatten(result)
        values = [batcher.value(x) if isinstance(x, Tensor) else x for x in found]
    places = read_out_dims(func, out_dims, result, out_spec)
    return [placed(func, x, d, size) for x, d in zip(values, places)], out_spec, places


@at_users_line
def read_out_dims(func, out_dims, result, out_spec):
    places = broadcast_leaves(out_dims, out_spec)
    if isinstance(result, Tensor) and isinstance(out_dims, tuple) and len(out_dims) == 1:
        places = list(out_dims)
    if places is None:
        raise ValueError(f"vmap({name_of(func)}, ..., out_dims={out_dims})(<inputs>): out_dims is not compatible with "
                         f"the structure of `outputs`. out_dims has structure {tree_flatten(out_dims)[1]} but outputs "
                         f"has structure {out_spec}.")
    return places


@at_users_line
def placed(func, x, d, size):
    """An output with the mapped dim at ``d``."""
    if d is None:
        if isinstance(x, Batched):
            name = name_of(func)
            raise ValueError(f"vmap({name}, ...): `{name}` can not return a BatchedTensor when out_dim is None")
        return x
    if isinstance(x, Batched):
        return x.tensor if d == 0 else x.tensor.movedim(0, d)
    if not isinstance(x, Tensor):
        name = name_of(func)
        raise ValueError(f"vmap({name}, ...): `{name}` must only return Tensors, got type {type(x)}. Did you mean to "
                         "set out_dims= to None for output?")
    x = x.unsqueeze(0).expand((size, *x.shape))
    return x if d == 0 else x.movedim(0, d)


def _in_chunks(func, flat, spec, dims, size, out_dims, randomness, chunk_size, kwargs):
    pieces = []
    for start in range(0, size, chunk_size):
        n = min(chunk_size, size - start)
        part = [x if d is None else x.narrow(d, start, n) for x, d in zip(flat, dims)]
        outputs, out_spec, places = _run(func, part, spec, dims, n, out_dims, randomness, kwargs)
        pieces.append(outputs)
    return tree_unflatten([parts[0] if d is None else cat(list(parts), d) for parts, d in zip(zip(*pieces), places)],
                          out_spec)


# -- many directions -------------------------------------------------------------------------------------

def basis_of(tensors, start, count):
    """Rows ``start`` to ``start + count`` of the unit matrix over all elements of some tensors, in their shapes."""
    found, before = [], 0
    sizes = [x.numel() for x in tensors]
    for x, n in zip(tensors, sizes):
        if count == sum(sizes) and len(tensors) == 1:
            rows = eye(n, dtype=x.dtype, device=x.device)
        else:
            rows = zeros((count, n), dtype=x.dtype, device=x.device)
            first, last = max(start, before), min(start + count, before + n)
            if last > first:
                rows[first - start:last - start, first - before:last - before].fill_diagonal_(1)
        found.append(savable(rows.reshape((count, *x.shape))))
        before += n
    return found
