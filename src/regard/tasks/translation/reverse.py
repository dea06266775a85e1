"""Translations ranked again by a model of the reverse direction: the noisy channel [Yee19 §2]."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from regard.data.batches.batch import Ids
from regard.decoding.hypotheses import Hypothesis
from regard.system.errors import Option, UsageError
from regard.text.language_tokens import UNKNOWN_LANGUAGE
from regard.text.languages import primary


def facing(forward: Any, reverse: Any) -> Any:
    """A model of the reverse direction of a translator, which reads what that writes.

    Raises:
        UsageError: it is a model of other languages.
    """
    source, target = forward.direction
    if reverse.assets.languages:
        asked = [None if code == UNKNOWN_LANGUAGE else code for code in (target, source)]
        return reverse.between(*asked)
    for own, wanted in zip(reverse.direction, (target, source), strict=True):
        if UNKNOWN_LANGUAGE not in (own, wanted) and primary(own) != primary(wanted):
            theirs = " → ".join(reverse.direction)
            raise UsageError(f"translates {theirs}; the reverse of {source} → {target} is wanted", Option("reverse"))
    return reverse


def rerank(forward: Any, sources: Sequence[Ids], found: Sequence[list[Hypothesis]]) -> list[list[Hypothesis]]:
    """The hypotheses of sources by ``log p(y|x) + reverse_weight · log p(x|y)``, their new score; the best first.

    Those of a source stay as they are where it, or one of them, is too long for the reverse model to read as a whole.

    Args:
        forward: the translator, whose ``reverse`` reads what it writes.
        sources: ids with ``</s>``, and tokens of a language before them.
        found: hypotheses of each.
    """
    reverse, weight = facing(forward, forward.reverse), forward.recipe.decoding.reverse_weight
    texts, every = [_text(forward, ids) for ids in sources], list[tuple[int, Hypothesis, str]]()
    for place, line in enumerate(found):
        said = [forward.decode(one.tokens[len(forward.symbols.prefix) :]) for one in line]
        if _fits(reverse, texts[place], said):
            every += [(place, one, text) for one, text in zip(line, said, strict=True)]
    scored = reverse.score([text for *_, text in every], [texts[place] for place, *_ in every]) if every else []
    ranked = [list[Hypothesis]() for _ in found]
    for (place, one, _), back in zip(every, scored, strict=True):
        ranked[place].append(replace(one, score=one.log_probability + weight * back.log_probability))
    return [sorted(line, key=lambda one: -one.score) or found[place] for place, line in enumerate(ranked)]


def _text(forward: Any, ids: Ids) -> str:
    """What was read, on one line."""
    own, tokenizer = ids[len(forward.before) :].tolist(), forward.source_tokenizer
    return tokenizer.decode(own[:-1] if own[-1:] == [tokenizer.end] else own).replace("\n", " ")


def _fits(reverse: Any, text: str, said: Sequence[str]) -> bool:
    """Whether the reverse model reads outputs as a whole, and could write their source."""
    most, (wanted,) = reverse.recipe.data.max_tokens, reverse.target_tokenizer.ids_batch([text])
    read = max(map(len, reverse.source_tokenizer.ids_batch(said)))
    return read <= most - len(reverse.before) and len(wanted) <= most + reverse.recipe.decoding.max_extra
