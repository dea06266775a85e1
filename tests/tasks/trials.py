"""What a teaching tells of the work of a validation, and nothing of what takes longer where nothing does."""

from typing import Any


def shares(teaching: Any, generate: bool = False) -> list[float]:
    """The shares of the work that are told of."""
    told: list[float] = []
    teaching.model.eval()
    teaching.trial(generate, told.append)
    return told


def evenly(count: int) -> list[float]:
    """The shares of so many batches."""
    return [number / count for number in range(1, count + 1)]
