"""What ptxas says a kernel takes, and how much that may be.

A thread that keeps values on a stack or spills registers waits for memory in its inner loop; a multiprocessor has 65536
registers, and with fewer than two blocks on it nothing runs while one waits at a barrier.
"""
import re
import struct

VERBOSE = "--ptxas-options=-v"
REGISTERS = 65536

# Bytes of a kernel's arguments, which each launch copies. Kernels over many tensors take what a launch may.
ARGUMENTS, MANY = 1024, 4000

# Bytes of stack, bytes that are spilled, blocks on a multiprocessor: of kernels that take more than (0, 0, 2) by NVRTC
# 13.0, for halves, or the dtype that is compiled first. One block of 1024 threads is enough. What goes beyond has
# become slower.
BOUNDS = {
    "convolve_each_far": (0, 0, 1),
    "convolve_tensor": (24, 20, 2),                     # 5 of 325 instructions of its loop
    "cumprod_before": (8, 4, 2),
    "cumsum_before": (8, 4, 2),
    "pad_edges_transposed": (160, 0, 2),                # places in each dim
    "pad_edges_transposed_far": (160, 0, 2),
    "step_counted": (8, 0, 2),
}

# Of another dtype: so many bytes more, of stack and spilled, and one block. The most have layer_norm of halves with
# weights of float64.
OTHERS = (136, 132)

_SAID = re.compile(r"Compiling entry function '(\w+)'.*?(\d+) bytes stack frame, (\d+) bytes spill stores.*?"
                   r"Used (\d+) registers", re.S)


def declared(cubin):
    """Kernel to the most threads that its blocks have and the bytes of its arguments, as ``.nv.info`` says."""
    sections, = struct.unpack_from("<Q", cubin, 0x28)
    size, count, names = struct.unpack_from("<HHH", cubin, 0x3a)
    heads = [struct.unpack_from("<IIQQQQ", cubin, sections + k * size) for k in range(count)]
    texts = heads[names][4]
    found = {}
    for name, _, _, _, start, length in heads:
        name = cubin[texts + name:cubin.index(0, texts + name)].decode()
        if not name.startswith(".nv.info."):
            continue
        at = start
        while at < start + length:
            form, attribute, value = struct.unpack_from("<BBH", cubin, at)
            kernel = found.setdefault(name.removeprefix(".nv.info."), {})
            if (form, attribute) == (4, 5):
                kernel["threads"] = struct.unpack_from("<I", cubin, at + 4)[0]
            if (form, attribute) == (3, 0x19):
                kernel["arguments"] = value
            at += 4 + (value if form == 4 else 0)
    return found


def used(log):
    """(kernel, bytes of stack, bytes spilled, registers of a thread) of each kernel of a program."""
    return [(name, int(stack), int(spilled), int(registers)) for name, stack, spilled, registers in _SAID.findall(log)]


# Elementwise: a few registers that a large formula spills once, and more of the largest ones. None has an array.
ELEMENTWISE = (24, 24, 2)
LARGE = re.compile(r":(bessel|spherical_bessel|igamma|logit)")
SPILLED = (96, 160, 2)


def bound_of(program, kernel):
    """(stack, spilled, blocks) of a kernel."""
    if not program.startswith("elementwise"):
        return BOUNDS.get(kernel, (0, 0, 2))
    return SPILLED if LARGE.search(program) else ELEMENTWISE


def too_much(program, log, cubin, first=True):
    """What of a program's kernels is beyond its bound, which is that of the dtype that is compiled ``first``."""
    wrong, kernels = [], declared(cubin)
    for name, stack, spilled, registers in used(log):
        most_stack, most_spilled, least_blocks = bound_of(program, name)
        if not first:
            most_stack, most_spilled, least_blocks = most_stack + OTHERS[0], most_spilled + OTHERS[1], 1
        block, arguments = kernels[name]["threads"], kernels[name]["arguments"]
        if arguments > (MANY if program.startswith(("many", "step:")) else ARGUMENTS):
            wrong.append(f"{name}: {arguments} bytes of arguments")
        blocks = REGISTERS // (block * -(-registers // 8) * 8)
        if stack > most_stack or spilled > most_spilled or blocks * block < min(least_blocks * block, 1024):
            wrong.append(f"{name}: {stack} bytes of stack, {spilled} spilled, {registers} registers: {blocks} blocks "
                         f"of {block}")
    return wrong
