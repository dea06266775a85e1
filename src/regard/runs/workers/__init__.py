"""Training by several processes: starting and ending them, and what those do that are started."""
