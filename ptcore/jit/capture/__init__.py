"""Capture: from a call of the user's function to rows and guards (doc/source/dev/capture.rst).

``source`` finds and proves the text of a function, ``rewrite`` makes of it one that asks the recorder for all that is
outside, ``recorder``, ``operators`` and ``calls`` answer and write ``guards``, ``tracer`` writes the rows, ``session``
cuts a call into segments and puts its result together, ``shallow`` runs what is not captured, ``explain`` tells.
"""
