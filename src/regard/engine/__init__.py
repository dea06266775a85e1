"""A finished model made fast: the same step as in ``models/decoding``, computed by ``kernels``, without torch.

Read ``layers`` (and what they are made of), ``transformer`` (the step), ``build`` (recipe, weights → parts).
The wiring of a layer stands here a second time, on purpose; the laws hold the two equal.
"""
