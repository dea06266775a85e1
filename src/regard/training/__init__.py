"""Weights made: the loop, schedules, optimisers, checkpoints."""
