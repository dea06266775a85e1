"""How weights are made: the loop, its schedule and optimiser, and checkpoints that survive anything.

``files`` and ``manifest`` know no torch, so that opening a model folder does not load it.
"""
