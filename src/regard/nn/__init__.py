"""The layers of a network, on tensors only, in the order of the paper."""
