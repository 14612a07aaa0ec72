"""What compare.py times: entries (group, name, statement, namespace of a library, ratio to reach).

``core`` holds small ops, views, the engine, small steps; ``large`` whole kernels; ``layers`` forward
and backward of modules; ``training`` whole steps of networks; ``data`` epochs from memory; ``spectra`` transforms.

The group ``table`` is no list of workloads: ``table`` makes its calls from the rows.
"""
WORKLOADS = []


def workload(group, name, make, target):
    """Registers ``make(xp)``, which prepares operands and returns what is timed."""
    WORKLOADS.append((group, name, "run()", lambda xp: {"run": make(xp)}, target))
