"""Attention in tiles: ``score_mod`` and ``mask_mod`` run as programs in the kernel, which skips empty blocks.

The functions are traced with tensors of one number. Parts of the graph that depend on less than a pair of query and key
(``slopes[h]``, ``document[q]``) are computed once for all positions, as tables. The rest, if it is elementwise, is
recorded as a plan over a tile of scores (``ptcore/_ops/attention/tiles.h``). Any other function raises
:class:`NoFormula`.
"""
import math

import ptcore
from ptcore._libraries import library
from ptcore._ops.attention.tiles import KEYS, QUERIES, Program, Taken, Tiles
from ptcore._ops.plan.plan import Plan
from ptcore._state import is_history_recorded, no_grad
from ptcore._tensor import Tensor
from ptcore.autograd.function import Function
from ptcore.func import vjp
from ptcore.fx.experimental.proxy_tensor import make_fx
from ptcore.fx.node import attribute_at, map_arg
from ptcore.jit.passes import Memory, row_of
from ptcore.nn.attention._block_mask import WHOLE, noop_mask

np = library("numpy")

__all__ = ["NoFormula", "attend", "tiles_of"]

ROUND = 16                  # number of places of a tile is a multiple of this, the longest vector
_QUERY, _KEY, _SCORE, _OTHER = 1, 2, 4, 8


class NoFormula(Exception):
    """Raised for a function that is no elementwise formula of a score and positions."""


class _Formula:
    """A function of numbers, as tables and a program for a tile.

    Parameters
    ----------
    f : callable
        Of a score, (b, h, q_idx, kv_idx) and, if ``has_grad``, the gradient of a score.
    positions : list of Tensor
        The four positions as tensors of 4 dims, each along its own.
    width : int
        Queries of a tile.
    dtype : dtype
        Of scores.
    """

    def __init__(self, f, positions, width, dtype, has_grad):
        self.positions, self.width, self.dtype = positions, width, dtype
        numbers = [ptcore.zeros((), dtype=t, device="cpu") for t in (dtype, *[p.dtype for p in positions])]
        try:
            module = make_fx(f)(*numbers, *numbers[:has_grad])
        except Exception as e:
            raise NoFormula(str(e)) from e  # the caller then evaluates all positions, which raises the user's error
        module.graph.eliminate_dead_code()
        self.module, self.nodes, self.has_grad = module, list(module.graph.nodes), has_grad
        self.inputs = [node for node in self.nodes if node.op == "placeholder"]
        self.records = is_history_recorded()
        self.needs, self.values = {}, {}
        self.taken, self.taken_of = [], {}

    def program(self):
        """The program; None for a function that returns the score, or the gradient, unchanged."""
        if Memory(self.nodes).written:
            raise NoFormula("it writes to tensors")
        result = self.nodes[-1].args[0]
        if result not in self.nodes:
            raise NoFormula("it returns no tensor")
        with no_grad():
            for node in self.nodes[:-1]:
                self.needs[node] = self._needs(node)
                self._evaluate(node)
            if result is self.inputs[-1 if self.has_grad else 0]:
                return None
            if not self._in_tile(result) or (result in self.taken_of and not self._is_element(result)):
                raise NoFormula("its result depends on no score")
            return self._record(result)

    def _needs(self, node):
        if node.op == "placeholder":
            return (_SCORE, _OTHER, _OTHER, _QUERY, _KEY, _SCORE)[self.inputs.index(node)]
        found = 0
        for x in node.all_input_nodes:
            found |= self.needs[x]
        return found

    def _in_tile(self, node):
        return self.needs[node] & _SCORE or self.needs[node] & (_QUERY | _KEY) == _QUERY | _KEY

    def _evaluate(self, node):
        """Checks a node and, unless it is for tiles, computes it for all positions."""
        if node.op == "get_attr":
            value = attribute_at(self.module, node.target)
            if not isinstance(value, Tensor) or value.device.type != "cpu" or (
                    value.requires_grad and self.records):
                raise NoFormula("it holds a tensor that requires a gradient, or is on another device")
            self.values[node] = value
        elif node.op == "placeholder":
            if self.needs[node] != _SCORE:
                self.values[node] = self.positions[self.inputs.index(node) - 1]
        elif node.op != "call_function":
            raise NoFormula(f"{node.op} {node.target}")
        elif not self.needs[node]:  # depends only on tensors that the function holds, so any op is allowed
            self.values[node] = self._call(node, self.values.__getitem__)
        else:
            row = row_of(node)
            name = None if row is None else row.name
            if name == "expand" and not node.args[1]:
                if not self._in_tile(node):
                    self.values[node] = self.values[node.args[0]]
            elif name == "index_get":
                if self._takes(node) and not self._in_tile(node):
                    root, indices = self.taken_of[node]
                    self.values[node] = self.values[root][tuple([self.values[i] for i in indices])]
            elif any(x in self.taken_of and x not in self.values and not self._is_element(x)
                     for x in node.all_input_nodes):
                raise NoFormula("it computes with a row of a tensor")
            elif name != "to_dtype" and (row is None or row.kind != "elementwise"):
                raise NoFormula(f"it calls {name or node.target}")
            elif not self._in_tile(node):
                self.values[node] = self._call(node, self.values.__getitem__)

    def _takes(self, node):
        """Notes the index for each dim of an indexed tensor; returns whether the node indexes an element."""
        source, indices, dims, _ = node.args
        root, known = self.taken_of.get(source, (source, None))
        if known is None:
            if self.needs[source]:
                raise NoFormula("it takes an element of what it computes")
            known = [None] * self.values[source].ndim
        left = [d for d, index in enumerate(known) if index is None]
        known = list(known)
        for d, index in zip(dims, indices):
            known[left[d]] = index
        self.taken_of[node] = root, known
        return all([index is not None for index in known])

    def _is_element(self, node):
        return None not in self.taken_of[node][1]

    def _element(self, node, samples):
        """The value for the plan at the positions of a tile."""
        root, indices = self.taken_of[node]
        source = self.values[root]
        if source.dtype.itemsize == 2 and source.dtype.kind == "f":
            raise NoFormula("it takes elements of half precision")
        self.taken.append(Taken(source))
        places = []
        for i in indices:
            place = samples[i]
            if place.dtype.kind not in "iu":
                raise NoFormula("it takes elements by a mask")
            places.append(place.to(ptcore.int64).expand(KEYS, self.width))
        return self.taken[-1].at(places)

    @staticmethod
    def _call(node, value):
        return node.target(*map_arg(node.args, value), **map_arg(node.kwargs, value))

    def _table(self, node):
        """A node's value as a contiguous tensor of 4 dims."""
        value = self.values[node]
        if value.ndim not in (0, 4):
            raise NoFormula("it holds a tensor of more than one number, of which it takes no element")
        return (value if value.ndim else value.reshape(1, 1, 1, 1)).contiguous()

    def _record(self, result):
        score = ptcore.zeros(KEYS, self.width, dtype=self.dtype, device="cpu")
        given = [score, ptcore.zeros_like(score)][:1 + self.has_grad]
        samples = dict(zip([self.inputs[0], self.inputs[-1]], given))
        steps = [node for node in self.nodes if node.op == "call_function" and self._in_tile(node)
                 and (node not in self.taken_of or self._is_element(node))]
        tables = []
        for step in steps:
            for node in self.taken_of[step][1] if step in self.taken_of else step.all_input_nodes:
                if node not in samples and not self._in_tile(node):
                    table = self._table(node)
                    tables.append(table)
                    sizes = (KEYS if table.shape[3] > 1 else 1, self.width if table.shape[2] > 1 else 1)
                    samples[node] = ptcore.zeros(sizes, dtype=table.dtype, device="cpu")
                    given.append(samples[node])
        plan = Plan()
        try:
            plan.begin(given, True)
            for node in steps:
                name = row_of(node).name
                samples[node] = (samples[node.args[0]] if name == "expand" else self._element(node, samples)
                                 if name == "index_get" else self._call(node, samples.__getitem__))
            out = samples[result]
            if out.dtype != self.dtype:
                out = out.to(self.dtype)
            if out.shape != score.shape:
                raise NoFormula("its result is the same for several positions")
            spot = plan.spot(out)
            plan.end([out])
            return Program(plan, spot, tables, self.has_grad, self.taken)
        except (RuntimeError, ValueError) as e:
            raise NoFormula(str(e)) from e
        finally:
            plan.stop()


def _spans(block_mask, batch, heads, length, keys):
    """(first, spans, rows, by_batch, by_head): see Tiles. Neighbouring blocks are one span."""
    if block_mask is None or tuple(block_mask.BLOCK_SIZE) == (WHOLE, WHOLE):
        return np.array([0, 1]), np.array([[0, keys, int(block_mask is None)]]), max(length, 1), 0, 0
    down, across = block_mask.BLOCK_SIZE
    pairs = [(block_mask.kv_num_blocks, block_mask.kv_indices)]
    if block_mask.full_kv_num_blocks is not None:
        pairs.append((block_mask.full_kv_num_blocks, block_mask.full_kv_indices))
    kinds = np.zeros(block_mask.kv_indices.shape, np.int8)
    for kind, pair in enumerate(pairs, 1):
        numbers, columns = (t.numpy() for t in pair)
        listed = np.arange(columns.shape[-1]) < numbers[..., None]
        kinds[(*np.nonzero(listed)[:-1], columns[listed])] = kind       # a block in both lists is full
    kinds = kinds.reshape((1,) * (4 - kinds.ndim) + kinds.shape)
    if (kinds.shape[0] not in (1, batch) or kinds.shape[1] not in (1, heads) or kinds.shape[2] * down < length
            or kinds.shape[3] * across < keys):
        raise NoFormula(f"the mask has blocks of shape {kinds.shape}")
    rows = kinds.shape[2]
    flat = kinds.reshape(-1, kinds.shape[3])
    flat[:, -(-keys // across):] = 0
    row, column = np.nonzero(flat)
    kind = flat[row, column]
    starts = np.ones(len(row), bool)
    starts[1:] = (row[1:] != row[:-1]) | (column[1:] != column[:-1] + 1) | (kind[1:] != kind[:-1])
    begin = np.flatnonzero(starts)
    first_key = column[begin] * across
    last_key = np.minimum(keys, first_key + np.diff(np.append(begin, len(row))) * across)
    spans = np.stack([first_key, last_key - first_key, kind[begin] - 1], 1)
    first = np.searchsorted(row[begin], np.arange(len(flat) + 1))
    return first, spans, down, kinds.shape[1] * rows * (kinds.shape[0] > 1), rows * (kinds.shape[1] > 1)


def tiles_of(query, key, score_mod, block_mask, needs_grad):
    """The tiles of attention for functions that are formulas.

    Raises
    ------
    NoFormula
        If one of them is none, or blocks of queries are too small.
    """
    batch, heads, length, _ = query.shape
    first, spans, rows, by_batch, by_head = _spans(block_mask, batch, heads, length, key.shape[2])
    height = next((n for n in (QUERIES, QUERIES // 2, QUERIES // 4) if length <= rows or rows % n == 0), None)
    if height is None:
        raise NoFormula(f"blocks of {rows} queries are no whole tiles")
    width = 1 if length == 1 else min(height, -(-length // ROUND) * ROUND)
    dtype = ptcore.float64 if query.dtype == ptcore.float64 else ptcore.float32
    counts = batch, heads, -(-length // height) * height if length > 1 else 1, key.shape[2]
    positions = [ptcore.arange(n, device="cpu") for n in counts]
    positions[2] = positions[2].clamp(max=length - 1)
    positions = [p.reshape([-1 if i == k else 1 for i in range(4)]) for k, p in enumerate(positions)]
    mask_mod = noop_mask if block_mask is None else block_mask.mask_mod

    def plain(score, *at):
        return score if score_mod is None else score_mod(score, *at)

    def masked(score, *at):
        allowed = mask_mod(*at)
        if allowed.dtype != ptcore.bool:
            raise NoFormula("mask_mod must return bool")
        return ptcore.where(allowed, plain(score, *at), -math.inf)

    def slope(score, b, h, q, k, grad):
        return vjp(lambda x: plain(x, b, h, q, k), score)[1](grad)[0]

    def program(f, has_grad=False):
        return _Formula(f, positions, width, dtype, has_grad).program()

    programs = [None, None, None]
    if score_mod is not None and (spans[:, 2] == 1).any():
        programs[1] = program(plain)
    if (spans[:, 2] == 0).any():
        programs[0] = program(plain if mask_mod is noop_mask else masked)
    if score_mod is not None and needs_grad:
        programs[2] = program(slope, True)
    first, spans = (ptcore.from_numpy(np.ascontiguousarray(a, np.int64)) for a in (first, spans))
    return Tiles(first, spans, height, width, rows, by_batch, by_head, programs)


class _Attend(Function):
    """Attention by tiles. A recorded backward runs ``composed``, which computes the same with all scores."""

    @staticmethod
    def forward(ctx, query, key, value, tiles, scale, composed):
        """(output, log-sum-exp, greatest scores)"""
        out, lse, most = tiles.forward(query, key, value, scale)
        ctx.save_for_backward(query, key, value, out, lse)
        ctx.tiles, ctx.scale, ctx.composed = tiles, scale, composed
        ctx.mark_non_differentiable(most)
        ctx.set_materialize_grads(False)
        return out, lse, most

    @staticmethod
    def backward(ctx, g, g_lse, _):
        """The gradients of query, key and value."""
        query, key, value, out, lse = ctx.saved_tensors
        if is_history_recorded():
            pairs = [pair for pair in zip(ctx.composed(query, key, value), (g, g_lse)) if pair[1] is not None]
            results, grads = zip(*pairs)
            found = ptcore.autograd.grad(results, (query, key, value), grads, create_graph=True, allow_unused=True)
        else:
            g = ptcore.zeros_like(out) if g is None else g
            found = ctx.tiles.backward(g, query, key, value, out, lse, g_lse, ctx.scale)
        return *found, None, None, None


def attend(query, key, value, tiles, scale, composed):
    """(output, log-sum-exp, greatest scores) by tiles; the last one has no gradient."""
    return _Attend.apply(query, key, value, tiles, scale, composed)
