"""``regard.probe``: what passes at the named points of a model, captured or replaced while it runs; needs torch."""

from regard.library.probe import AXES, Captured, capture, intervene, points

__all__ = ["AXES", "Captured", "capture", "intervene", "points"]
