"""Training: the loop, schedule, optimiser, and crash-safe checkpoints.

``files`` and ``manifest`` know no torch, so opening a model folder does not load it.
"""
