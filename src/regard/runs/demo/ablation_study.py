"""How the demonstration's model finds what its pronoun stands for: who looks at the noun, and which heads it needs.

Both are measured on held-out sentences in which *it* may stand for either of two nouns of different German gender. The
model reads the English sentence and its translation up to the pronoun, and what it would write there, *er*, *sie* or
*es*, is right or wrong; so that every head can be switched off in turn, in seconds.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import ClassVar

import torch

from regard.models.ablation import Ablations, Head
from regard.models.captured_attention import evaluating, pass_over, weights_of
from regard.models.transformer import Transformer
from regard.runs.demo.grammar import Pair, words_of_tokens
from regard.runs.demo.grammar.scores import Shares, cross_shares, encoder_shares, mean_shares, over_words, pronoun_of
from regard.system.errors import RegardError, Stopped
from regard.tasks.translation.translator import Translation
from regard.text.counts import agreeing, counted

LOOKING = ("encoder", "cross")
"""Kinds of attention in which a pronoun can look at an English noun."""
SENTENCES = 300
"""Held-out sentences of a study."""
KINDS = {"encoder": "encoder", "decoder": "decoder", "cross": "encoder–decoder"}


@dataclass(frozen=True)
class PronounAttention:
    """Attention of the pronoun, in the head that on validation looks best where the gender is (from 1)."""

    layer: int
    head: int
    valid: Shares
    test: Shares


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

    def to_dict(self) -> dict[str, object]:
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
        self.model, self.network = model, model.model
        both = model.vocabularies
        targets = both.target.encode_batch([pair.target for pair in pairs])
        sources = both.source.encode_batch([pair.source for pair in pairs])
        pronouns = [pronoun_of(pair) for pair in pairs]
        places = [
            words_of_tokens(found.offsets, found.text).index(one.target_word)
            for found, one in zip(targets, pronouns, strict=True)
        ]
        written = [[both.target.start, *found.ids[:place]] for found, place in zip(targets, places, strict=True)]
        ends = torch.tensor([len(ids) for ids in written]).cumsum(0) - 1
        self._run = pass_over(self.network, [[*found.ids, both.source.end] for found in sources], written)
        self._ends_B = ends.to(self.network.output.weight.device)
        self.genders = [one.antecedent_gender for one in pronouns]
        self.commonest = max(Counter(self.genders).values())
        """How many are right if it is always the commonest pronoun."""
        said = [(gender, found.ids[place]) for gender, found, place in zip(self.genders, targets, places, strict=True)]
        self._forms = {gender: id for (gender, id), _ in reversed(Counter(said).most_common())}

    @torch.inference_mode()
    def right(self, off: Sequence[Head] = ()) -> int:
        """How many pronouns the model would write right without some heads."""
        with evaluating(self.network), Ablations(off=tuple(off)).apply(self.model.recipe.model):
            hidden_BD = self._run()[self._ends_B]
            score_BV = self.network.scores(hidden_BD)
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
    attention = model.recipe.model.attention.items()
    places = [
        Head(kind, layer + 1, head + 1)
        for kind, (layers, heads) in attention
        for layer in range(layers)
        for head in range(heads)
    ]
    heads = tuple(HeadFinding(place, shares.get(place), right([place])) for place in places)
    enough = AblationStudy.guess * len(pairs)
    alone = {(one.head,): one.right for one in heads}
    steps = [HeadAblation((), test.right())]
    while len(steps) <= len(places) and steps[-1].right > enough:
        sets = [(*steps[-1].heads, place) for place in places if place not in steps[-1].heads]
        tried = [HeadAblation(off, alone[off] if off in alone else right(off)) for off in sets]
        steps.append(min(tried, key=lambda one: one.right))
    smallest = steps[-1] if steps[-1].right <= enough else None
    for place in smallest.heads[:-1] if smallest else ():  # without those that can stay while the pronoun is a guess
        fewer = tuple(one for one in smallest.heads if one != place) if smallest else ()
        if (count := right(fewer)) <= enough:
            smallest = HeadAblation(fewer, count)
    lookers = tuple(one.head for one in heads if one.looks)
    together = HeadAblation(lookers, right(lookers))
    return AblationStudy(len(pairs), steps[0].right, test.commonest, heads, tuple(steps[1:]), smallest, together)


def pronoun_attention(model: Translation, valid: Sequence[Pair], tested: Sequence[Pair], kind: str) -> PronounAttention:
    """Choose the head on validation sentences, report its shares on test sentences.

    Chosen is the largest share on the antecedent after the rival's is taken off: a head that looks at both nouns alike
    has not found out which one is meant. A German pronoun may look at the English one instead, where the encoder has
    found it out.
    """
    shares = {place: mean_shares(found) for place, found in head_shares(model, valid, kind).items()}
    best = max(shares, key=lambda place: shares[place].informative)
    return PronounAttention(best[0] + 1, best[1] + 1, shares[best], mean_shares(head_shares(model, tested, kind)[best]))


def head_shares(model: Translation, pairs: Sequence[Pair], kind: str) -> dict[tuple[int, int], list[Shares]]:
    """For each (layer, head) the shares of each sentence's pronoun: the English one, or the German one (cross)."""
    shares = encoder_shares if kind == "encoder" else cross_shares
    both = model.vocabularies
    assert isinstance(model.model, Transformer)
    sources = both.source.encode_batch([p.source for p in pairs])
    targets = both.target.encode_batch([p.target for p in pairs])
    read, written = ([[*words_of_tokens(e.offsets, e.text), -1] for e in side] for side in (sources, targets))
    queries = read if kind == "encoder" else written
    said, heard = [[*e.ids, both.source.end] for e in sources], [[both.target.start, *e.ids] for e in targets]
    weights = weights_of(model.model, model.recipe.model.family, said, heard)
    found: dict[tuple[int, int], list[Shares]] = {}
    for layer, by_pair in enumerate(weights[kind]):
        for pair, weight_HQK, query, key in zip(pairs, by_pair, queries, read, strict=True):
            for head, weight_QK in enumerate(weight_HQK.double().cpu().numpy()):
                found.setdefault((layer, head), []).append(shares(pair, over_words(weight_QK, query, key)))
    return found


def study_lines(study: AblationStudy) -> list[str]:
    """The findings, a line each; numbers are those of right pronouns."""
    of, found = study.sentences, list[tuple[str, str]]()
    commonest = f"always the commonest of these pronouns: {study.commonest:,}"
    found.append(("with all heads", f"{study.right:,} of {of:,} right; {commonest}"))
    for kind in LOOKING:
        for best in study.looking(kind)[:1]:
            assert best.shares
            look = f"{name(best.head)}: {where(best.shares)}; {best.right:,} right without it"
            found.append((f"looks best, {KINDS[kind]}", look))
    costliest = min(study.heads, key=lambda one: one.right)
    found.append(("costs most alone", f"{name(costliest.head)}: {costliest.right:,} right without it"))
    lookers, together = study.without_lookers.heads, study.without_lookers.right
    half = f"more than {HeadFinding.half:.0%}"
    if lookers:
        said = agreeing(f"{counted(len(lookers), 'head')} [gives|give] the noun {half}; ", len(lookers))
        said += agreeing(f"{together:,} right without [it|them]", len(lookers))
    else:
        said = f"no head gives the noun {half}"
    found.append(("all that look", said))
    if study.smallest is None:
        found.append(("smallest set", f"none found: more than {study.guess:.0%} are right without any head"))
    elif not study.smallest.heads:
        found.append(("smallest set", "the pronoun is a guess with all heads"))
    else:
        said = f"{', '.join(map(name, study.smallest.heads))}: {study.smallest.right:,} right without it"
        found.append(("smallest set found", said))
    found.append(("spare", f"{study.spare} of {counted(len(study.heads), 'head')} cost nothing when removed alone"))
    return [f"  {title:<28} {said}" for title, said in found]


def name(head: Head) -> str:
    """A head in a few characters: encoder 3·2 is head 2 of the encoder's layer 3."""
    return f"{KINDS[head.kind]} {head.layer}·{head.head}"


def where(shares: Shares) -> str:
    """Where a pronoun looks, in words; the English pronoun comes first where it gets more than the antecedent."""
    nouns = f"{shares.antecedent:.0%} on the antecedent, {shares.rival:.0%} on the other noun"
    return f"{shares.pronoun:.0%} on “it”, {nouns}" if shares.pronoun > shares.antecedent else nouns
