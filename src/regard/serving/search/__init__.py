"""One batch for everybody: the searches of all calls side by side, in a process of its own."""
