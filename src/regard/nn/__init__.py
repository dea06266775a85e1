"""The parts of a network, tensors only, in the order of the paper."""
