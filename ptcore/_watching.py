"""Who is told when a profile begins and ends: parts of the package that are no ops, and show in it as ranges.

A part is a function that is called with True and with False. It exchanges what programs call, as the entries of ops are
exchanged, so that nothing is looked at while there is no profile.
"""

parts = []
is_on = False


def when_profiled(part):
    """Registers a part; decorates."""
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
