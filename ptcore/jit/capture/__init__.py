"""Capture: from a call of the user's function to rows and guards (doc/source/dev/capture.rst).

``source`` finds a function's text and proves that it belongs to the code. ``rewrite`` makes of the text a function that
asks the recorder for everything outside of it. ``recorder``, ``operators`` and ``calls`` answer and write ``guards``.
``tracer`` writes the rows. ``session`` cuts a call into segments and puts its result together. ``shallow`` runs
functions that are not captured, and hands on their calls. ``explain`` reports graphs and breaks.
"""
