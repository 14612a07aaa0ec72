"""Selective checkpoints: some results of a checkpointed function are kept, and the others computed again.

An interpreter watches both runs of the function as calls of rows. The first run keeps the results that the policy
selects. The second run returns these results in place of calling the op; it is only needed for the tensors that the
call saves for the backward. The first run has noted for each of them whether it was an argument or a result.
"""
import enum
from collections import defaultdict

import ptcore._ops as ops
from ptcore import _random
from ptcore._interpret import Interpreter
from ptcore._ops.calling import run
from ptcore._state import innermost_saved_hooks, no_grad
from ptcore._tensor import Tensor
from ptcore._trees.tree import tree_flatten, tree_map
from ptcore.autograd.function import Function
from ptcore.autograd.graph import saved_tensors_hooks

INPLACE = 1


class CheckpointPolicy(enum.Enum):
    """The policy for an op's result in a selective checkpoint.

    ``MUST_SAVE`` and ``PREFER_SAVE``: the result is kept from the first run. ``MUST_RECOMPUTE`` and
    ``PREFER_RECOMPUTE``: it is computed again. ``MUST_CPU_OFFLOAD`` and ``PREFER_CPU_OFFLOAD`` address compilers; here,
    as in PyTorch without one, the result is computed again.
    """

    MUST_SAVE = 0
    PREFER_SAVE = 1
    MUST_RECOMPUTE = 2
    PREFER_RECOMPUTE = 3
    MUST_CPU_OFFLOAD = 4
    PREFER_CPU_OFFLOAD = 5


class SelectiveCheckpointContext:
    """The first argument of a policy.

    Attributes
    ----------
    is_recompute : bool
        Whether it is one of the second run. Policies are asked in the first run alone.
    op_output : object
        The result of the call.
    """

    def __init__(self, *, is_recompute, op_output=None):
        self.is_recompute, self.op_output = is_recompute, op_output


_SAVED = (CheckpointPolicy.MUST_SAVE, CheckpointPolicy.PREFER_SAVE)
_RECOMPUTED, _CONSUMED = object(), object()
_DIFFERENT = ("This can happen if the operations in the checkpointed region are nondeterministic or depend on global "
              "state that changed between forward and backward.")


class _Kept:
    """A kept tensor, with its version when it was kept."""

    def __init__(self, x):
        self.value, self.version = x.detach(), x._version

    def get(self, mutable):
        if not mutable and self.value._version != self.version:
            raise RuntimeError("Tensor cached during selective activation checkpoint has been mutated")
        return self.value


class _Entry:
    """The result of a call, the tensors it saved for the backward, and the random state after it."""

    def __init__(self, result, state):
        self.result = tree_map(lambda x: _Kept(x) if isinstance(x, Tensor) else x, result)
        self.state = state
        self.saved = []                 # place of an argument, (place of a result,), or another tensor
        self.graded = [isinstance(x, Tensor) and x.requires_grad for x in tree_flatten(result)[0]]


def _is_same_memory(a, b):
    return a.shape == b.shape and a.stride() == b.stride() and a.dtype is b.dtype and a.data_ptr() == b.data_ptr()


class _Given(Function):
    """Makes kept results results of the arguments; their backward is never run."""

    @staticmethod
    def forward(ctx, results, graded, *tensors):
        ctx.mark_non_differentiable(*[r for r, g in zip(results, graded, strict=True)
                                      if not g and isinstance(r, Tensor)])
        return tuple(results)

    @staticmethod
    def backward(ctx, *grads):
        raise RuntimeError("checkpoint: the second run of a selective checkpoint has no backward of its own")


def _seen_as(op, args):
    """The op that PyTorch's dispatch would see in place of a row, and its arguments."""
    if op == "linear" and args[0].ndim > 1:
        x, weight, bias = args
        with no_grad():
            x, weight = x.flatten(0, -2), weight.mT
        return ("mm", (x, weight)) if bias is None else ("addmm", (bias, x, weight))
    return op, args


class _Interposed(Interpreter):
    """The base of both runs: finds the row's function and counts calls."""

    traces = computes = True    # values are the same as without this interpreter

    def __init__(self, storage):
        self.storage = storage
        self.counts = defaultdict(int)

    def _prepare(self):
        self.counts.clear()

    def call(self, op, args, out, variant):
        row = ops.row(op)
        # A view has no memory of its own, and a write must be done again.
        if row.kind in ("composite", "view") or out is not None or variant == INPLACE:
            return NotImplemented
        k = self.counts[op]
        self.counts[op] += 1
        return self.one(row, k, args)


class _First(_Interposed):
    """The first run, which asks the policy."""

    def __init__(self, policy, storage):
        super().__init__(storage)
        self.policy = policy

    def one(self, row, k, args):
        result, packed = _watched(row.name, args)
        answer = self.policy(row.name, args, result)
        calls = self.storage[row.name]
        if answer not in _SAVED:
            calls[k] = _RECOMPUTED
            return result
        calls[k] = entry = _Entry(result, _random.get_states() if row.random else None)
        inputs, results = tree_flatten(args)[0], tree_flatten(result)[0]
        for x in packed:
            entry.saved.append(_place(x, inputs, results))
        return result


def _watched(op, args):
    """The result of a call, and the tensors that it saved for the backward."""
    packed = []
    outer = innermost_saved_hooks()
    if outer is None:
        return run(op, args), packed

    def pack(x):
        packed.append(x)
        return outer[0](x)

    with saved_tensors_hooks(pack, outer[1]):
        return run(op, args), packed


def _place(x, inputs, results):
    """The place at which the second run finds a saved tensor."""
    for i, y in enumerate(inputs):
        if y is x:
            return i
    for i, y in enumerate(results):
        if isinstance(y, Tensor) and _is_same_memory(x, y):
            return (i,)
    return x.detach()


class _Second(_Interposed):
    """The second run, which returns the kept results."""

    def __init__(self, storage, mutable):
        super().__init__(storage)
        self.mutable = mutable

    def one(self, row, k, args):
        calls = self.storage.get(row.name)
        entry = None if calls is None else calls.get(k)
        if entry is None:
            raise RuntimeError(f"checkpoint: call {k} of {row.name} encountered during backward but not found among "
                               f"those of the forward pass. {_DIFFERENT}")
        if entry is _CONSUMED:
            raise RuntimeError("Trying to backward an extra time. You are only allowed to backward once on any region "
                               "computed under selective activation checkpoint.")
        if entry is _RECOMPUTED:
            return run(row.name, args)
        calls[k] = _CONSUMED
        inputs = tree_flatten(args)[0]
        result = tree_map(lambda x: x.get(self.mutable) if isinstance(x, _Kept) else x, entry.result)
        results, spec = tree_flatten(result)
        hooks = innermost_saved_hooks()
        for place in entry.saved if hooks is not None else ():
            hooks[0](inputs[place] if type(place) is int else results[place[0]] if type(place) is tuple else place)
        if entry.state is not None:
            _random.set_states(entry.state)
        if any(entry.graded):
            tensors = [x for x in inputs if isinstance(x, Tensor) and x.requires_grad]
            results = _Given.apply(results, entry.graded, *tensors)
        return spec.unflatten(results)


def _is_same_op(a, b):
    """Whether two functions are one op: each has the id of a row."""
    return a is b or (getattr(a, "op", None) is not None and getattr(a, "op", None) == getattr(b, "op", None))


def create_selective_checkpoint_contexts(policy_fn_or_list, allow_cache_entry_mutation=False):
    """Two contexts for ``context_fn`` of `checkpoint`, which keep the results of some ops from the first run.

    Parameters
    ----------
    policy_fn_or_list : callable or list
        ``policy(ctx, op, *args, **kwargs)`` is asked about each call and returns a `CheckpointPolicy`; ``ctx`` is a
        `SelectiveCheckpointContext`, ``op`` a function such as ``ptcore.mm``. A list of functions is a policy that
        keeps what these return, ``MUST_SAVE``, and computes all else again.
    allow_cache_entry_mutation : bool, default: False
        Whether kept results may be written to before the backward; otherwise a write is an error.

    Returns
    -------
    tuple of two context managers

    Notes
    -----
    A policy is called for rows, as ``ptcore.ops`` lists them. A function made of other ops, such as ``matmul``, is seen
    as these: ``mm``, ``bmm``, ``mv`` or ``dot``. As in PyTorch, ``linear`` is seen as ``addmm``, or without bias as
    ``mm``; a list may also name it ``linear``. Other rows are seen as themselves: the ops of which PyTorch makes
    ``softmax``, ``layer_norm`` or convolutions have no names here. Views, and writes in place and to ``out=``, are
    always run again, without a call of the policy.

    Examples
    --------
    >>> import functools
    >>> import ptcore
    >>> from ptcore.utils.checkpoint import checkpoint, create_selective_checkpoint_contexts
    >>> x = ptcore.eye(2, requires_grad=True)
    >>> contexts = functools.partial(create_selective_checkpoint_contexts, [ptcore.mm])
    >>> checkpoint(lambda x: (x @ x).exp().sum(), x, use_reentrant=False, context_fn=contexts).backward()
    >>> x.grad
    tensor([[5.4366, 2.0000],
            [2.0000, 5.4366]])
    """
    if isinstance(policy_fn_or_list, list):
        listed = list(policy_fn_or_list)
        for op in listed:
            if getattr(op, "op", None) is None:
                raise ValueError(f"create_selective_checkpoint_contexts: expected functions of ops in the list, such "
                                 f"as ptcore.mm, got {op!r} of type {type(op)}")

        def policy(op, args, result):
            seen = [ops.function(op), ops.function(_seen_as(op, args)[0])]
            return CheckpointPolicy.MUST_SAVE if any(_is_same_op(f, x) for f in seen for x in listed) else None
    elif callable(policy_fn_or_list):
        def policy(op, args, result):
            op, args = _seen_as(op, args)
            positional, keyword = ops.bound(ops.row(op), args)
            answer = policy_fn_or_list(SelectiveCheckpointContext(is_recompute=False, op_output=result),
                                       ops.function(op), *positional, **keyword)
            return CheckpointPolicy.MUST_SAVE if answer is True else answer
    else:
        raise TypeError("create_selective_checkpoint_contexts: policy_fn_or_list must be either a function or a list "
                        f"of ops, got {type(policy_fn_or_list).__name__}")
    storage = defaultdict(dict)
    return _First(policy, storage), _Second(storage, allow_cache_entry_mutation)
