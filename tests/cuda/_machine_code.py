"""What a kernel's machine code does where it spends its time: instructions, bytes moved, divisions, products.

``nvdisasm`` (the package nvidia-cuda-nvdisasm) gives the blocks of a cubin and the ways between them. No GPU is needed.

The *main path* of a kernel is the way through the blocks of a loop, or from the entry to an exit where no loop has what
follows, that has the most products by tensor cores; else moves the most bytes by the kernel's widest accesses to global
memory; and of such ways the one of the fewest instructions, or of the most but for those that call. A loop within
counts once, and so does what only some threads or some elements do; a call counts as all instructions of what is
called.

The number of elements of a path is what its widest accesses move divided by what these move for an element.
"""
import functools
import importlib.metadata
import re
import subprocess
import tempfile
from pathlib import Path
from typing import NamedTuple

_CLUSTER = re.compile(r'^subgraph "cluster_(.*)" \{$')
_NODE = re.compile(r'^"(.*)"$')
_EDGE = re.compile(r'^"(.*)":\w+:\w -> "(.*)":\w+:\w')
_INSTRUCTION = re.compile(r"(?:@!?U?P\w+ +)?([A-Z][A-Z0-9_.]*)\s*(.*?) *;")
_MOVES = re.compile(r"(LDG|STG|LDGSTS|LD|ST|RED|REDG)(\.|$)")
_WIDTH = re.compile(r"\.(128|64|[US]?16|[US]?8)\b")
_DIVIDES = re.compile(r"__cuda_sm\d+x?_(div|rem)_[us]64")
_DOUBLE = re.compile(r"(DADD|DMUL|DFMA|DSETP|DMNMX)\b")
_PRODUCT = re.compile(r"(HMMA|IMMA|DMMA|HGMMA|UTCHMMA)\.")


@functools.cache
def nvdisasm():
    """The path of the program, or None where its package is not installed."""
    try:
        files = importlib.metadata.files("nvidia-cuda-nvdisasm") or []
    except importlib.metadata.PackageNotFoundError:
        return None
    return next((str(f.locate()) for f in files if f.stem == "nvdisasm"), None)


class Instruction(NamedTuple):
    op: str
    rest: str

    @property
    def bytes(self):
        """What it moves from or to global memory."""
        if not _MOVES.match(self.op):
            return 0
        found = _WIDTH.search(self.op)
        return int(found[1].lstrip("US")) // 8 if found else 4

    @property
    def divides(self):
        """A call of the division of integers of 64 bits, some eighty instructions."""
        return self.op.startswith("CALL") and bool(_DIVIDES.search(self.rest))

    @property
    def double(self):
        return bool(_DOUBLE.match(self.op))

    @property
    def product(self):
        """By tensor cores."""
        return bool(_PRODUCT.match(self.op))


class Kernel:
    """Blocks of instructions by name, ``after``: name to the names of blocks that may follow; ``entry`` is the first.

    ``others`` are all functions of the cubin, by name.
    """

    def __init__(self, entry, others):
        self.entry, self.others, self.blocks, self.after = entry, others, {}, {}

    def cost(self, code):
        """How many instructions some are, with those of functions that they call."""
        total = len(code)
        for i in code:
            if i.op.startswith("CALL"):
                called = self.others.get(i.rest.strip("`()"))
                total += sum(map(len, called.blocks.values())) if called else 0
        return total

    @functools.cached_property
    def back_edges(self):
        """(block, head) of each jump back to a block that is on the way to it."""
        found, state, stack = [], {self.entry: 1}, [(self.entry, iter(self.after[self.entry]))]
        while stack:
            block, rest = stack[-1]
            follower = next(rest, None)
            if follower is None:
                state[block] = 2
                stack.pop()
            elif state.get(follower) == 1:
                found.append((block, follower))
            elif follower not in state:
                state[follower] = 1
                stack.append((follower, iter(self.after[follower])))
        return found

    @functools.cached_property
    def loops(self):
        """Head to the names of the blocks of the loop that begins there."""
        before = {name: [] for name in self.blocks}
        for name, followers in self.after.items():
            for follower in followers:
                before[follower].append(name)
        found = {}
        for last, head in self.back_edges:
            body, queue = found.setdefault(head, {head}), [last]
            while queue:
                block = queue.pop()
                if block not in body:
                    body.add(block)
                    queue += before[block]
        return found

    @functools.cached_property
    def innermost(self):
        """The loops that have no other within."""
        loops = self.loops
        return {head: body for head, body in loops.items() if not any(h in body for h in loops if h != head)}

    @property
    def looped(self):
        """The instructions of all loops."""
        blocks = {block for body in self.loops.values() for block in body}
        return [i for block in blocks for i in self.blocks[block]]

    def _best(self, start, within, ends, widest, longest):
        """(products, bytes moved by accesses of ``widest`` bytes, minus instructions, blocks) of a path.

        It goes from ``start`` to one of ``ends`` and is the first by these numbers; with ``longest`` it has the most
        instructions instead.
        """
        back, best = set(self.back_edges), {}
        order, seen, stack = [], {start}, [(start, iter(self.after[start]))]
        while stack:                                    # what follows comes first in `order`
            block, rest = stack[-1]
            follower = next(rest, None)
            if follower is None:
                order.append(block)
                stack.pop()
            elif follower in within and (block, follower) not in back and follower not in seen:
                seen.add(follower)
                stack.append((follower, iter(self.after[follower])))
        for block in order:
            code = self.blocks[block]
            further = [best[f] for f in self.after[block] if f in within and (block, f) not in back and f in best]
            if block in ends:
                further.append((0, 0, 0, ()))
            cost = -self.cost(code)
            if longest and not any(i.op.startswith("CALL") for i in code):
                cost = len(code)
            if further:
                products, moved, fewer, path = max(further)
                best[block] = (products + sum(i.product for i in code),
                               moved + sum(i.bytes for i in code if i.bytes == widest),
                               fewer + cost, (block, *path))
        return best.get(start, (0, 0, 0, ()))

    def main_path(self, longest=False):
        """The instructions of the main path."""
        widest = max(i.bytes for code in self.blocks.values() for i in code)
        back, innermost, choices = self.back_edges, self.innermost, []
        for head, body in self.loops.items():
            choices.append((2 if head in innermost else 1, head, body, {last for last, h in back if h == head}))
        ends = {name for name, code in self.blocks.items() if any(i.op == "EXIT" for i in code)}
        choices.append((0, self.entry, set(self.blocks), ends))
        found = []
        for rank, head, body, ends in choices:
            products, moved, fewer, path = self._best(head, body, ends, widest, longest)
            found.append((products > 0, moved > 0, rank, products, moved, fewer, path))
        return [i for block in max(found)[-1] for i in self.blocks[block]]


def kernels(cubin):
    """Name to ``Kernel`` of everything in a cubin, functions that kernels call included."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "program.cubin"
        path.write_bytes(cubin)
        done = subprocess.run([nvdisasm(), "-bbcfg", path], capture_output=True, text=True, check=True)
    found, kernel, node = {}, None, ""
    for line in done.stdout.splitlines():
        if m := _CLUSTER.match(line):
            kernel = found[m[1]] = Kernel(m[1], found)
        elif m := _NODE.match(line):
            node = m[1]
        elif line.startswith("[label=") and kernel is not None:
            text = line.replace("\\l", "\n").replace("\\", "")
            kernel.blocks[node] = [Instruction(*m.groups()) for m in _INSTRUCTION.finditer(text)]
            kernel.after.setdefault(node, [])
        elif m := _EDGE.match(line):
            kernel.after.setdefault(m[1], []).append(m[2])
    return found
