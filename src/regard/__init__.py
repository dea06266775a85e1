"""Regard trains, runs and shows attention models. ``import regard`` loads no torch.

>>> import regard
>>> translation = regard.train(source="train.en", target="train.de", output="model")  # doctest: +SKIP
>>> regard.load("model").translate("A man sleeps.")  # doctest: +SKIP
"""

from __future__ import annotations

from regard.system.errors import RegardError

TYPE_CHECKING = False  # as typing's own, which the command line would have to load before it hears a signal
if TYPE_CHECKING:
    from typing import Any

    from regard.runs.train import train
    from regard.tasks.model_folder import load

__version__ = "0.1.0"
__all__ = ["RegardError", "__version__", "load", "train"]

_LAZY = {"load": "regard.tasks.model_folder", "train": "regard.runs.train"}


def __getattr__(name: str) -> Any:
    """Import ``load`` and ``train``, which need torch, when they are first used."""
    if name not in _LAZY:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(_LAZY[name]), name)


def __dir__() -> list[str]:
    return sorted(__all__)
