"""Regard trains, runs and shows attention models. ``import regard`` loads no torch.

>>> import regard
>>> translation = regard.train(source="train.en", target="train.de", output="model")  # doctest: +SKIP
>>> regard.Translator.load("model").translate("A man sleeps.")  # doctest: +SKIP
"""

from __future__ import annotations

from regard.system import VERSION
from regard.system.errors import RegardError

TYPE_CHECKING = False  # as typing's own, which the command line would have to load before it hears a signal
if TYPE_CHECKING:
    from regard import probe
    from regard.library.attention import Attention, Figure, TokenLabels
    from regard.library.attribution import Attribution, TokenShares
    from regard.library.base import Model
    from regard.library.heads import Estimate, HeadSummary, HeadTable
    from regard.library.models import (
        Classifier,
        ImageClassifier,
        LanguageModel,
        MaskedLm,
        PairClassifier,
        Tagger,
        TextEncoder,
        TextToText,
        Translator,
        fit,
        load,
        train,
    )
    from regard.library.served import Page, explore

__version__ = VERSION
__all__ = [
    "Attention",
    "Attribution",
    "Classifier",
    "Estimate",
    "Figure",
    "HeadSummary",
    "HeadTable",
    "ImageClassifier",
    "LanguageModel",
    "MaskedLm",
    "Model",
    "Page",
    "PairClassifier",
    "RegardError",
    "Tagger",
    "TextEncoder",
    "TextToText",
    "TokenLabels",
    "TokenShares",
    "Translator",
    "__version__",
    "explore",
    "fit",
    "load",
    "probe",
    "train",
]

_LAZY = {
    **dict.fromkeys(set(__all__) - {"RegardError", "__version__"}, "regard.library.models"),
    **dict.fromkeys(("Attention", "Figure", "TokenLabels"), "regard.library.attention"),
    **dict.fromkeys(("Attribution", "TokenShares"), "regard.library.attribution"),
    **dict.fromkeys(("Estimate", "HeadSummary", "HeadTable"), "regard.library.heads"),
    **dict.fromkeys(("Page", "explore"), "regard.library.served"),
    "probe": "regard.probe",
}


def __getattr__(name: str) -> object:
    """Import the public names that need torch when they are first used."""
    if name not in _LAZY:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    from regard.system.installation import missing

    try:
        module = import_module(_LAZY[name])
    except ImportError as error:
        raise missing(error) or error from None
    return module if module.__name__.endswith(f".{name}") else getattr(module, name)


def __dir__() -> list[str]:
    return sorted(__all__)
