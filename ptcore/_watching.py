"""Parts of the package that are notified when a profile begins and ends: they are no ops, and record ranges.

A part is a function that is called with True and with False. It replaces functions that programs call by recording
ones, so that they cost nothing while no profile is on.
"""

parts = []
is_on = False


def when_profiled(part):
    """Registers a part; used as a decorator."""
    parts.append(part)
    if is_on:
        part(True)
    return part


def tell(begins):
    """Tells all parts."""
    global is_on
    is_on = begins
    for part in parts:
        part(begins)
