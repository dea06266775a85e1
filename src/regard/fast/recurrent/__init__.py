"""Recurrences without torch: cells, layers of them, attention to what was read, and a step of search of these."""
