"""Where the tags of a text, and what it keeps, go in its translation."""
