"""What every row may use; no torch."""

VERSION = "0.1.0"
"""The version of Regard: ``regard.__version__``, which no module of ours may import without importing all of it."""
