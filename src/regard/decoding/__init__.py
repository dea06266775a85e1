"""Search over any step, on the host, in NumPy: no network, no torch (ARCHITECTURE idea 3).

Read ``step`` (what search knows of a model), ``rows``, ``search`` (greedy, beam, the entry points), ``scheduler``.
"""
