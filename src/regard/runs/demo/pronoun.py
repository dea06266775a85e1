"""Where the pronouns of the demonstration's sentences look, head by head."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from regard.models.captured_attention import weights_of
from regard.models.transformer import Transformer
from regard.runs.demo.grammar import Pair, words_of_tokens
from regard.runs.demo.grammar.scores import Shares, cross_shares, encoder_shares, mean_shares, over_words
from regard.tasks.translation.translator import Translation


@dataclass(frozen=True)
class PronounAttention:
    """Attention of the pronoun, in the head that on validation looks best where the gender is (from 1)."""

    layer: int
    head: int
    valid: Shares
    test: Shares

    @property
    def margin(self) -> float:
        """Attention to the antecedent minus attention to its rival, on validation."""
        return self.valid.margin


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
