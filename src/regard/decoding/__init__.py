"""Search and sampling over any step function, on the host, in NumPy: no network, no torch (ARCHITECTURE idea 3).

Read ``step`` (the protocol of a model), ``hypotheses`` (and their rows), ``strategies`` (greedy, beam, samples),
``search`` (and its scheduler).
"""
