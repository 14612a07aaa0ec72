"""What ptxas says a kernel takes, and how much that may be.

A thread that keeps values on a stack or spills registers waits for memory in its inner loop; a multiprocessor has 65536
registers, and with fewer than two blocks on it nothing runs while one waits at a barrier.
"""
import re
import struct

VERBOSE = "--ptxas-options=-v"
REGISTERS = 65536

# Bytes of stack, bytes that are spilled, blocks on a multiprocessor: of kernels that take more than (0, 0, 2) by NVRTC
# 13.0, for the dtype that is compiled first. One block of 1024 threads is enough. What goes beyond has become slower.
BOUNDS = {
    "amax_vectors": (8, 8, 2),
    "amin_vectors": (8, 8, 2),
    "attention_key_tensor_128_masked": (8, 16, 2),
    "attention_tensor_64_masked": (72, 172, 2),
    "convolve_each_far": (0, 0, 1),
    "convolve_tensor": (104, 128, 2),
    "convolve_weight_far": (0, 0, 1),
    "convolve_wide": (0, 0, 1),
    "cross_entropy_gradient_wide": (8, 16, 2),
    "cross_entropy_rows": (8, 8, 2),
    "cumprod_before": (8, 4, 2),
    "cumsum_before": (8, 4, 2),
    "grid_sample_2d": (16, 12, 2),
    "log_softmax_backward_parts": (8, 0, 2),
    "log_softmax_backward_wide": (24, 20, 1),
    "logsum_before": (320, 0, 1),
    "logsum_carries": (144, 0, 2),
    "logsum_line_carries": (144, 0, 2),
    "logsum_lines": (144, 0, 2),
    "logsum_tile_carries": (288, 0, 2),
    "logsum_tiles": (304, 0, 2),
    "logsumexp_columns": (16, 0, 2),
    "logsumexp_rows": (16, 0, 2),
    "logsumexp_vectors": (24, 8, 2),
    "pad_edges_transposed": (160, 0, 2),
    "product_vectors": (8, 8, 2),
    "softmax_backward_wide": (24, 20, 1),
    "sort_place": (8, 4, 2),
    "step_counted": (8, 0, 2),
    "sum_vectors": (8, 8, 2),
    "variance_columns": (16, 16, 2),
}

_SAID = re.compile(r"Compiling entry function '(\w+)'.*?(\d+) bytes stack frame, (\d+) bytes spill stores.*?"
                   r"Used (\d+) registers", re.S)


def threads(cubin):
    """Kernel to the most threads that its blocks have, as the machine code says (``.nv.info``, attribute 5)."""
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
            if (form, attribute) == (4, 5):
                found[name.removeprefix(".nv.info.")] = struct.unpack_from("<I", cubin, at + 4)[0]
            at += 4 + (value if form == 4 else 0)
    return found


def used(log):
    """(kernel, bytes of stack, bytes spilled, registers of a thread) of each kernel of a program."""
    return [(name, int(stack), int(spilled), int(registers)) for name, stack, spilled, registers in _SAID.findall(log)]


# Elementwise: a few registers that a large formula spills once. Sines and what is made of them have an array of 64
# bytes for arguments beyond 1e5, which is read in a branch that others do not take.
ELEMENTWISE = (24, 24, 2)
SINES = re.compile(r":(sin|cos|tan|sinc|airy|bessel|spherical_bessel|(shifted_)?chebyshev|igamma|logit)")
SINE = (128, 160, 2)


def bound_of(program, kernel):
    """(stack, spilled, blocks) of a kernel."""
    if not program.startswith("elementwise"):
        return BOUNDS.get(kernel, (0, 0, 2))
    return SINE if SINES.search(program) else ELEMENTWISE


def too_much(program, log, cubin):
    """What of a program's kernels is beyond its bound."""
    wrong = []
    for name, stack, spilled, registers in used(log):
        most_stack, most_spilled, least_blocks = bound_of(program, name)
        block = threads(cubin)[name]
        blocks = REGISTERS // (block * -(-registers // 8) * 8)
        if stack > most_stack or spilled > most_spilled or blocks * block < min(least_blocks * block, 1024):
            wrong.append(f"{name}: {stack} bytes of stack, {spilled} spilled, {registers} registers: {blocks} blocks "
                         f"of {block}")
    return wrong
