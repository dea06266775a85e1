"""Models brought in and taken out: one table of names for each format."""
