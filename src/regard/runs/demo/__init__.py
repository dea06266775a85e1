"""The demonstrations: a translator of a built-in corpus, and images of digits."""

NAME = "without.json"
"""What was measured of the translator without an idea, in the demonstration's folder."""
