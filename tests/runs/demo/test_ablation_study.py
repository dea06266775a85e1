"""What removing heads costs is measured as a plain loop over single sentences finds it, and said in words."""

import json
from dataclasses import replace

import pytest

import regard
from regard.inspection.folders.walk import write_walk
from regard.models.ablation import Head
from regard.runs.demo import ablation_study
from regard.runs.demo.ablation_study import AblationStudy, HeadAblation, HeadFinding, study_heads
from regard.runs.demo.grammar import Pair, corpus
from regard.runs.demo.grammar.scores import Shares
from regard.runs.demo.translation import write
from regard.system.errors import RegardError, Stopped
from regard.tasks.translation.translator import Translation
from tests.refusals import refused
from tests.runs.demo.plain_study import leaves, plain_walk

SMALL = {"encoder_layers": 1, "decoder_layers": 1, "d_model": 32, "d_ff": 64, "heads": 2, "norm_place": "pre"}


@pytest.fixture(scope="module")
def trained(tmp_path_factory) -> tuple[Translation, list[Pair]]:
    folder = tmp_path_factory.mktemp("study")
    made = corpus(400, 20, 120, seed=1)
    recipe = {"text": {"vocabulary": 800}, "data": {"max_tokens": 64}, "model": SMALL}
    recipe["training"] = {"tokens": 512, "rate": 1e-2, "warmup": 5, "validation_sentences": 10, "product": "exact"}
    options = {"steps": 30, "threads": 1, "device": "cpu", "quiet": True}
    model = regard.train(**write(made, folder / "corpus"), output=folder / "model", recipe=recipe, **options)
    return model, [pair for pair in made.test if pair.pronoun and pair.pronoun.decides]


@pytest.mark.parametrize(
    ("guess", "most"),
    [(0.7, 10), (0.2, 10), *(pytest.param(guess, None, marks=pytest.mark.long(0.3)) for guess in (0.7, 0.2))],
)
def test_every_number_of_the_walk_is_that_of_plain_loops(trained, monkeypatch, guess, most) -> None:
    model, pairs = trained[0], trained[1][:most]
    monkeypatch.setattr(AblationStudy, "guess", guess)
    found = json.loads(write_walk(study_heads(model, pairs), "0" * 64))
    assert [found.pop(name) for name in ("format", "weights", "version", "sha256")][:2] == [1, "0" * 64]
    assert dict(leaves(found)) == pytest.approx(dict(leaves(plain_walk(model, pairs, guess))), abs=1e-5)


def test_a_guess_needs_no_removal_and_no_sentences_are_refused(trained, monkeypatch) -> None:
    model, pairs = trained
    with refused(Stopped):
        study_heads(model, pairs, lambda: True)
    monkeypatch.setattr(AblationStudy, "guess", 1.0)
    found = study_heads(model, pairs)
    assert (found.steps, found.smallest) == ((), HeadAblation((), found.right))
    with refused(RegardError, "model"):
        study_heads(model, [])


PLACES = [
    (Shares(0.5, 0.49, 0.3, 0.1), Shares(0.4, 0.1, 0.3, 0.1)),  # looks at the antecedent, and the rival as much
    (Shares(0.5, 0.2, 0.3, 0.1, 0.1), Shares(0.02, 0.01, 0.01, 0.1, 0.9)),  # the English pronoun knows its gender
]


@pytest.mark.parametrize(("first", "second"), PLACES)
def test_the_head_that_tells_the_nouns_apart_is_chosen(monkeypatch, first: Shares, second: Shares) -> None:
    found = {(0, 1): [first], (2, 3): [second, second]}
    monkeypatch.setattr(ablation_study, "head_shares", lambda model, pairs, kind: found)
    chosen = ablation_study.pronoun_attention(None, [], [], "cross")
    assert (chosen.layer, chosen.head, chosen.valid, chosen.test) == (3, 4, second, second)


def finding(kind: str, layer: int, head: int, right: int, *shares: float) -> HeadFinding:
    """With shares of the antecedent, the rival and the English pronoun."""
    found = Shares(shares[0], shares[1], 0.1, 0.05, *shares[2:]) if shares else None
    return HeadFinding(Head(kind, layer, head), found, right)


HEADS = (
    finding("encoder", 3, 2, 190, 0.91, 0.02),
    finding("encoder", 1, 1, 297, 0.6, 0.4),
    finding("cross", 1, 2, 290, 0.2, 0.1),
    finding("cross", 1, 1, 180, 0.03, 0.01, 0.8),
    finding("decoder", 1, 2, 298),
)
ENCODER, OTHER, _, CROSS, _ = (one.head for one in HEADS)
STEPS = HeadAblation((CROSS,), 250), HeadAblation((CROSS, ENCODER), 150)
FOUND = AblationStudy(
    300, 298, 110, HEADS, STEPS, HeadAblation((ENCODER,), 190), without_lookers=HeadAblation((ENCODER, OTHER), 140)
)
SAID = (
    "298 of 300 right; always the commonest of these pronouns: 110",
    "encoder 3·2: 91% on the antecedent, 2% on the other noun; 190 right without it",
    "encoder–decoder 1·1: 80% on “it”, 3% on the antecedent, 1% on the other noun; 180 right",
    "encoder–decoder 1·1: 180 right without it",  # the one that costs most
    "2 heads give the noun more than 50%; 140 right without them",
    "encoder 3·2: 190 right without it",
    "2 of 5 heads cost nothing",
)
AT_NOUN = (*HEADS[:2], finding("cross", 1, 1, 180, 0.9, 0.01, 0.05))
NO_HEAD = {"smallest": None, "without_lookers": HeadAblation((), 298), "heads": HEADS[2:]}


FINDINGS = [
    ({}, SAID),
    ({"without_lookers": HeadAblation((ENCODER,), 9)}, ["1 head gives the noun more than 50%; 9 right without it"]),
    ({"heads": AT_NOUN}, ["encoder–decoder 1·1: 90% on the antecedent, 1% on the other noun; 180 right"]),
    (NO_HEAD, ["no head gives the noun more than 50%", "more than 70% are right without any head"]),
    ({"steps": (), "smallest": HeadAblation((), 150)}, ["the pronoun is a guess with all heads"]),
]


@pytest.mark.parametrize(("changed", "holds"), FINDINGS)
def test_the_findings_in_a_few_lines(changed: dict, holds: list[str]) -> None:
    said = "\n".join(ablation_study.study_lines(replace(FOUND, **changed)))
    assert [line for line in holds if line not in said] == []
    assert ("“it”" in said) == (changed.get("heads") is not AT_NOUN)
