"""From corpora to a folder of ids that training reads: made once, reused where everything it rests on is the same."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from regard.config import Recipe, Text
from regard.data.corpora import Corpus
from regard.data.folder import making, reusable
from regard.data.preparation import Preparation
from regard.data.prepared import Prepared
from regard.data.survey import Progress, Split, Survey, silent, split, survey
from regard.text.vocabulary import Vocabularies


def prepare(
    corpora: Sequence[Corpus],
    recipe: Recipe,
    folder: Path,
    validation: Corpus | None = None,
    vocabularies: Vocabularies | None = None,
    progress: Progress = silent,
) -> Prepared:
    """The prepared data of these corpora: what is in ``folder`` if it fits, else made anew.

    Without ``validation`` a part is split off by seed. Without ``vocabularies`` they are learned from a seeded sample.

    Raises:
        RegardError: a corpus cannot be used; or ``folder`` was made from other data or another recipe (and which field
            differs).
    """
    found = survey(corpora, progress)
    held_out = survey([validation], progress) if validation is not None else None
    inputs = _inputs(found, held_out, recipe, vocabularies)
    if reusable(folder, inputs):
        return Prepared(folder)
    nothing = np.zeros(sum(found.sizes), dtype=np.bool_)
    parts = Split(nothing, nothing) if validation else split(found, recipe.data.validation, recipe.seed)
    work = Preparation(corpora, parts, recipe, validation, progress)
    with making(folder) as partial:
        work.write(partial, vocabularies or work.learned(), inputs)
    return Prepared(folder)


def _inputs(
    found: Survey, held_out: Survey | None, recipe: Recipe, vocabularies: Vocabularies | None
) -> dict[str, Any]:
    """Everything the prepared data rests on, by name."""
    text, data = recipe.text, recipe.data
    rests: dict[str, Any] = {"data": found.fingerprint, "seed": recipe.seed, "data.max_tokens": data.max_tokens}
    rests["validation"] = held_out.fingerprint if held_out else "split"
    if held_out is None:
        rests["data.validation"] = data.validation
    if vocabularies is not None:
        rests["vocabulary"] = vocabularies.sha256
    else:
        for name in ("vocabulary", "joint", "normalisation", "sample"):
            rests[f"text.{name}"] = getattr(text, name)
        usual = Text()  # what came later is named only where it is used, so that older folders still fit
        for name in ("units", "lowercase"):
            if getattr(text, name) != getattr(usual, name):
                rests[f"text.{name}"] = getattr(text, name)
    rests["text.bpe_dropout"] = text.bpe_dropout
    if text.bpe_dropout:
        rests["text.segmentations"] = text.segmentations
    return rests
