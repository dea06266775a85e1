"""How the demonstration's model finds what its pronoun stands for: who looks at the noun, and which heads it needs.

Both are measured on held-out sentences in which *it* may stand for either of two nouns of different German gender. The
model reads the English sentence and its translation up to the pronoun, and what it would write there, *er*, *sie* or
*es*, is right or wrong; so that every head can be switched off in turn, in seconds.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any, ClassVar

import torch

from regard.models.ablation import Ablations, Head
from regard.models.captured_attention import evaluating, pass_over
from regard.models.transformer import Transformer
from regard.runs.demo.grammar import Pair, words_of_tokens
from regard.runs.demo.grammar.scores import Shares, mean_shares
from regard.runs.demo.pronoun import head_shares
from regard.system.errors import RegardError, Stopped
from regard.tasks.translation.translator import Translation

LOOKING = ("encoder", "cross")
"""Kinds of attention in which a pronoun can look at an English noun."""
SENTENCES = 300
"""Held-out sentences of a study."""


@dataclass(frozen=True)
class HeadFinding:
    """One head: where it looks from the pronoun, and what its removal costs.

    Args:
        head: which it is.
        shares: of the pronoun's attention; ``None`` for heads between German words.
        right: pronouns that are right without the head.
    """

    head: Head
    shares: Shares | None
    right: int
    half: ClassVar[float] = 0.5
    """Share of its attention that it must give the antecedent to count as one that looks there."""

    @property
    def looks(self) -> bool:
        """Whether it gives most of its attention to the antecedent."""
        return self.shares is not None and self.shares.antecedent > self.half


@dataclass(frozen=True)
class HeadAblation:
    """Heads that are removed together, and how many pronouns are right without them."""

    heads: tuple[Head, ...]
    right: int


@dataclass(frozen=True)
class AblationStudy:
    """What was found of a model.

    Args:
        sentences: how many were read.
        right: pronouns that are right with all heads.
        commonest: pronouns that would be right if it were always the commonest one.
        heads: every head of the model.
        steps: heads removed one after another, each time the one that costs most, until the pronoun is a guess.
        smallest: of the heads of the last step those that are needed for it; ``None`` where all heads were not enough,
            empty where the pronoun is a guess with all heads.
        without_lookers: all heads that look at the antecedent removed together.
    """

    sentences: int
    right: int
    commonest: int
    heads: tuple[HeadFinding, ...]
    steps: tuple[HeadAblation, ...]
    smallest: HeadAblation | None
    without_lookers: HeadAblation
    guess: ClassVar[float] = 0.7
    """Share of right pronouns at which the pronoun counts as a guess."""
    tolerance: ClassVar[float] = 0.01
    """Share of the pronouns that a head's removal may cost and still count as nothing."""

    @property
    def spare(self) -> int:
        """Heads whose removal alone costs nothing."""
        return sum(self.right - one.right <= self.tolerance * self.sentences for one in self.heads)

    def looking(self, kind: str) -> list[HeadFinding]:
        """The heads of a kind, by how far they look where the gender can be learned."""
        found = [one for one in self.heads if one.head.kind == kind and one.shares]
        return sorted(found, key=lambda one: one.shares.informative if one.shares else 0, reverse=True)

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        return {**asdict(self), "spare": self.spare}


class PronounPredictions:
    """Held-out sentences, and what a model would write for their pronouns.

    Args:
        model: a translator with the paper's encoder and decoder.
        pairs: sentences whose two nouns differ in German gender.
    """

    def __init__(self, model: Translation, pairs: Sequence[Pair]) -> None:
        if not pairs or not isinstance(model.model, Transformer):
            raise RegardError("needs a Transformer and sentences with a pronoun that tells", "model")
        self.model, self.network, self.pairs = model, model.model, pairs
        both = model.vocabularies
        targets = both.target.encode_batch([pair.target for pair in pairs])
        sources = both.source.encode_batch([pair.source for pair in pairs])
        places = [_first_token(found, pair) for found, pair in zip(targets, pairs, strict=True)]
        written = [[both.target.start, *found.ids[:place]] for found, place in zip(targets, places, strict=True)]
        ends = torch.tensor([len(ids) for ids in written]).cumsum(0) - 1
        self._run = pass_over(self.network, [[*found.ids, both.source.end] for found in sources], written)
        self._ends_B = ends.to(self.network.output.weight.device)
        said = [
            (pair.pronoun.antecedent_gender, found.ids[place])
            for pair, found, place in zip(pairs, targets, places, strict=True)
            if pair.pronoun
        ]
        self.genders = [gender for gender, _ in said]
        self._forms = {gender: id for (gender, id), _ in reversed(Counter(said).most_common())}

    @property
    def commonest(self) -> int:
        """How many are right if it is always the commonest pronoun."""
        return max(Counter(self.genders).values())

    @torch.inference_mode()
    def right(self, off: Sequence[Head] = ()) -> int:
        """How many pronouns the model would write right without some heads."""
        with evaluating(self.network), Ablations(off=tuple(off)).apply(self.model.recipe.model):
            hidden_BD = self._run()[self._ends_B]
            score_BV = self.network.output.scores(hidden_BD)
        names = list(self._forms)
        chosen_B = score_BV[:, [self._forms[name] for name in names]].argmax(1).tolist()
        return sum(names[chosen] == gender for chosen, gender in zip(chosen_B, self.genders, strict=True))


def study_heads(
    model: Translation, pairs: Sequence[Pair], should_stop: Callable[[], bool] = lambda: False
) -> AblationStudy:
    """Measure every head on sentences with a pronoun that tells, and find the few that the model needs for it.

    Args:
        model: of the demonstration.
        pairs: held-out sentences whose two nouns differ in German gender.
        should_stop: asked before each head.

    Raises:
        Stopped: ``should_stop`` returned true.
    """
    test = PronounPredictions(model, pairs)

    def right(off: Sequence[Head]) -> int:
        if should_stop():
            raise Stopped("stopped while heads were switched off; the model is saved, rerun the same command")
        return test.right(off)

    shares = {
        Head(kind, layer + 1, head + 1): mean_shares(found)
        for kind in LOOKING
        for (layer, head), found in head_shares(model, pairs, kind).items()
    }
    places = list(_every_head(model))
    heads = tuple(HeadFinding(place, shares.get(place), right([place])) for place in places)
    enough = AblationStudy.guess * len(pairs)
    alone = {(one.head,): one.right for one in heads}
    steps = [HeadAblation((), test.right())]
    while len(steps) <= len(places) and steps[-1].right > enough:
        sets = [(*steps[-1].heads, place) for place in places if place not in steps[-1].heads]
        tried = [HeadAblation(off, alone[off] if off in alone else right(off)) for off in sets]
        steps.append(min(tried, key=lambda one: one.right))
    smallest = _without_needless(steps[-1], right, enough) if steps[-1].right <= enough else None
    lookers = tuple(one.head for one in heads if one.looks)
    together = HeadAblation(lookers, right(lookers))
    return AblationStudy(len(pairs), steps[0].right, test.commonest, heads, tuple(steps[1:]), smallest, together)


def _without_needless(found: HeadAblation, right: Callable[[Sequence[Head]], int], enough: float) -> HeadAblation:
    """The same removal without the heads that can stay while the pronoun is still a guess."""
    for place in found.heads[:-1]:
        fewer = tuple(one for one in found.heads if one != place)
        if (count := right(fewer)) <= enough:
            found = HeadAblation(fewer, count)
    return found


def _every_head(model: Translation) -> Iterator[Head]:
    for kind, (layers, heads) in model.recipe.model.attention.items():
        for layer in range(1, layers + 1):
            yield from (Head(kind, layer, head) for head in range(1, heads + 1))


def _first_token(found: Any, pair: Pair) -> int:
    """The place of the first token of the German pronoun."""
    words = words_of_tokens(found.offsets, found.text)
    return words.index(pair.pronoun.target_word) if pair.pronoun else -1
