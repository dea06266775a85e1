"""Views of an attention record: a selection of kind, layer, head and words, rendered as text, SVG or JSON."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import isqrt

import numpy as np

from regard.inspection.forward.record import (
    TITLES,
    WHOLE,
    AttentionRecord,
    Kind,
    Weights,
    by_word,
    downsample,
    is_self_attention,
)
from regard.inspection.pictures import svg, terminal_heatmap
from regard.inspection.pictures.terminal_heatmap import ColourScheme
from regard.system.errors import Option, RegardError, UsageError

SMALLER = "Each square stands for several tokens: what those of its rows give to those of its columns, on average."


@dataclass(frozen=True)
class View:
    """What to show of a record.

    Args:
        record: one pass.
        kind: encoder, decoder, cross or pool.
        layer: counted from 1; ``None`` shows all layers at a glance.
        head: counted from 1; ``None`` shows all heads at a glance.
        whole: words instead of tokens.
    """

    record: AttentionRecord
    kind: Kind = "encoder"
    layer: int | None = None
    head: int | None = None
    whole: bool = False

    @property
    def title(self) -> str:
        """The title, in words."""
        parts = [TITLES[self.kind], self.layer and f"layer {self.layer}", self.head and f"head {self.head}"]
        return ", ".join(str(part) for part in parts if part)

    def labels(self) -> tuple[list[str], list[str]]:
        """The labels of rows and columns."""
        (queries, _), (keys, _) = self._sides()
        return queries, keys

    def heads(self) -> tuple[list[str], Weights]:
        """The heads shown: names, and weights stacked as ``weight_HQK``."""
        layers = range(1, len(self.record.weights[self.kind]) + 1) if self.layer is None else [self.layer]
        (_, queries), (_, keys) = self._sides()
        names, found = [], []
        for layer in layers:
            weight_HQK = self.record.layer(self.kind, layer)
            for head in range(1, len(weight_HQK) + 1) if self.head is None else [self.head]:
                names.append(f"layer {layer} head {head}" if self.layer is None else f"head {head}")
                weight_QK = self.record.head(self.kind, layer, head)
                found.append(by_word(weight_QK, queries, keys) if self.whole else weight_QK)
        return names, np.stack(found)

    def arc_diagram(self, word: str) -> svg.ArcDiagram:
        """Attention of one word (its last occurrence), in the head or averaged over the heads shown.

        Args:
            word: in capitals or not; ``es/sie`` is whichever of the two is there.

        Raises:
            UsageError: the word is not among the queries.
        """
        (queries, keys), place = self.labels(), self._word_index(word)
        names, weight_HQK = self.heads()
        caption = f"“{queries[place]}”: {self._place(len(names))}"
        beside = () if is_self_attention(self.kind) else queries
        return svg.ArcDiagram(keys, weight_HQK.mean(axis=0)[place], place, caption, beside)

    def _word_index(self, word: str) -> int:
        queries, _ = self.labels()
        wanted = {part.strip().lower() for part in (word, *word.split("/"))} - {""}
        places = [i for i, query in enumerate(queries) if query.strip("▁").lower() in wanted]
        if not places and self.kind == "pool":
            raise UsageError("in this model one learned query looks, whatever the text; leave it out", Option("token"))
        if not places:
            raise UsageError(f"{word!r} is not a word here; there are: {' '.join(queries)}", Option("token"))
        return places[-1]

    def _place(self, heads: int) -> str:
        return self.title if heads == 1 else f"{self.title}, mean of {heads} heads"

    def terminal(self, look: ColourScheme, word: str | None = None) -> str:
        """The picture for a terminal; with a single query always its arc diagram."""
        word = WHOLE if word is None and self.kind == "pool" else word  # one learned query attends, whatever the text
        if word is not None:
            return terminal_heatmap.bars(self.arc_diagram(word), look)
        names, weight_HQK = self.heads()
        if self.head is None or len(names) > 1:
            return terminal_heatmap.heads(weight_HQK, names, look, f"{self.title}: {self.record.texts(self.kind)[1]}")
        return terminal_heatmap.heatmap(weight_HQK[0], *self.labels(), look, self.title)

    def svg(self, word: str | None = None, remark: str = "", most: int | None = None) -> str:
        """The picture as SVG, with a remark below it.

        Args:
            word: that looks; ``None``: every token does.
            remark: a caption below.
            most: squares; several heads with more in total are drawn smaller, with a note.

        Raises:
            RegardError: a single head has more.
        """
        word = WHOLE if word is None and self.kind == "pool" else word  # one learned query attends, whatever the text
        if word is not None:
            return word_svg([self], word, remark)
        names, weight_HQK = self.heads()
        if self.head is None or len(names) > 1:
            if most is not None and weight_HQK.size > most:
                weight_HQK = downsample(weight_HQK, isqrt(most // len(names)))
                remark = f"{SMALLER} {remark}".strip()
            return svg.heads(weight_HQK, names, self.title, remark=remark)
        if most is not None and weight_HQK.size > most:
            found = f"this head has {weight_HQK.size:,} weights, a picture {most:,} at most"
            raise RegardError(f"{found}; shorten the text", "text")
        note = "Rows look, columns are looked at; a row sums to one."
        return svg.heatmap(weight_HQK[0], *self.labels(), self.title, note, remark)

    def values(self) -> dict[str, object]:
        """Plain values for JSON: labels, names of the heads, weights."""
        queries, keys = self.labels()
        names, weight_HQK = self.heads()
        return {
            "source_text": self.record.source_text,
            "target_text": self.record.target_text,
            "kind": self.kind,
            "layer": self.layer,
            "head": self.head,
            "queries": queries,
            "keys": keys,
            "heads": [
                {"name": name, "weights": np.round(weight_QK.astype(float), 6).tolist()}
                for name, weight_QK in zip(names, weight_HQK, strict=True)
            ],
        }

    def _sides(self) -> list[tuple[list[str], list[list[int]]]]:
        """For queries and keys: labels, and the token indices of each."""
        if self.whole:
            sides = [*self.record.words(self.kind)]
        else:
            tokens = self.record.queries(self.kind), self.record.keys(self.kind)
            sides = [[(token.text, [place]) for place, token in enumerate(side)] for side in tokens]
        return [([name for name, _ in side], [places for _, places in side]) for side in sides]


def word_svg(views: Sequence[View], word: str, remark: str = "") -> str:
    """Attention of one word in each of several sentences, below each other, as SVG.

    Within a sentence arcs run from the word, and the captions are the translations; between a translation and its
    sentence, or a whole text and its words, lines do; a remark stands below.
    """
    place = views[0]._place(len(views[0].heads()[0]))
    found = list(dict.fromkeys(view.labels()[0][view._word_index(word)] for view in views))
    who = " and ".join(f"“{one}”" for one in found)
    title = f"Where {who} look{'s' if len(found) == 1 else ''}: {place[:1].lower()}{place[1:]}"
    glances = [replace(view.arc_diagram(word), caption=f"→ {view.record.target_text}") for view in views]
    return svg.arc_diagrams(glances, title, remark=remark)
