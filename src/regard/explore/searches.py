"""A text before a model that writes, and the search for what it writes: greedy, or as a tree."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from regard.errors import UsageError
from regard.explore.scene import scene
from regard.explore.tokens import piece

if TYPE_CHECKING:
    from regard.config import Decoding
    from regard.decoding.hypotheses import Hypothesis
    from regard.decoding.rows import Ints
    from regard.decoding.trace import Trace
    from regard.text.vocabulary import AnyTokenizer

CANDIDATES = 5
"""What else might have come, at each token."""
SEARCHED = ("translation", "span-corruption")
"""Tasks whose models write something of their own, of which there is a best; a language model could always go on."""
GOES_ON = "language-model"


@dataclass(frozen=True)
class Begun:
    """A text before a model that writes.

    Args:
        task: the model, ready to use.
        source: what is read before the first step.
        first: the token that the first step reads; ``None``: the start symbol.
        limit: tokens that may be written, ``</s>`` counted.
    """

    task: Any
    source: Ints
    first: int | None
    limit: int

    @property
    def tokenizer(self) -> AnyTokenizer:
        """Of what is written."""
        found: AnyTokenizer = writing_tokenizer(self.task)
        return found

    @property
    def step(self) -> Any:
        """The model step by step."""
        task = self.task
        window = {} if self.first is None else {"window": task.recipe.data.max_tokens}
        return task.model.stepper(task.device, **window)

    def text(self, ids: Iterable[int]) -> str:
        """Pieces as a text; the symbols of missing spans by name."""
        from regard.tasks.shown import marked

        symbols = getattr(self.tokenizer, "sentinels", ()) if self.task.name == "span-corruption" else ()
        return marked(self.tokenizer, ids, symbols)

    def piece(self, id: int) -> str:
        """A piece that is written, as a page shows it."""
        return piece(self.tokenizer, id)

    def trace(self) -> Trace:
        """Notes what a search considers."""
        from regard.decoding.trace import Trace

        return Trace(CANDIDATES, self.task.symbols.without)

    def decoding(self, beam: int) -> Decoding:
        """The recipe's, with so many hypotheses."""
        found: Decoding = self.task.recipe.decoding.model_copy(update={"beam": beam})
        return found


def writing_tokenizer(task: Any) -> Any:
    """The tokenizer of what a model writes, or of the one text that it reads."""
    return task.vocabularies.target if task.name == "translation" else task.assets.tokenizer


def begun(task: Any, text: str, most: int) -> Begun:
    """A text before a model that writes.

    Args:
        task: a translator, or a model of missing spans or of language.
        text: what it reads.
        most: tokens that a language model goes on with; the others stop by themselves.

    Raises:
        UsageError: the model writes no text.
        RegardError: the text is empty or longer than those the model learned from.
    """
    if task.name == GOES_ON:
        *source, first = scene(task, text).read_ids
        return Begun(task, np.array(source, np.int64), first, most)
    if task.name not in SEARCHED:
        raise UsageError("this model writes no text", "model")
    read = scene(task, text, ()).read_ids
    return Begun(task, np.array(read, np.int64), None, len(read) + task.recipe.decoding.max_extra)


def found(start: Begun, beam: int, trace: Trace | None = None) -> list[Hypothesis]:
    """The best ways to write, as many as the beam is wide, the best first."""
    from regard.decoding.search import search

    firsts = None if start.first is None else [start.first]
    return search(
        start.step,
        [start.source],
        start.decoding(beam),
        start.task.symbols,
        nbest=beam,
        firsts=firsts,
        limits=[start.limit],
        trace=trace,
    )[0]
