"""Search over any step, on the host, in NumPy."""
