"""What removing heads costs is measured as a plain loop over single sentences finds it."""

import json
import os
from collections import Counter
from itertools import combinations
from pathlib import Path

import pytest

import regard
from regard.inspection.folders.walk import write_walk
from regard.models.ablation import Head
from regard.runs.demo.ablation_study import SENTENCES, AblationStudy, PronounPredictions, study_heads
from regard.runs.demo.grammar import Pair, corpus
from regard.runs.demo.pronoun import head_shares
from regard.runs.demo.translation import TEST, TRAIN, VALID, demonstrate, write
from regard.system.errors import RegardError, Stopped
from regard.tasks.translation.translator import Translation
from tests.refusals import refused
from tests.runs.demo.plain_study import check_equal, plain_right, plain_walk

SMALL = {"encoder_layers": 1, "decoder_layers": 1, "d_model": 32, "d_ff": 64, "heads": 2, "norm_place": "pre"}


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> tuple[Translation, list[Pair]]:
    folder = tmp_path_factory.mktemp("study")
    made = corpus(400, 20, 120, seed=1)
    recipe = {"text": {"vocabulary": 800}, "data": {"max_tokens": 64}, "model": SMALL}
    recipe["training"] = {"tokens": 512, "rate": 1e-2, "warmup": 5, "validation_sentences": 10, "product": "exact"}
    options = {"steps": 30, "threads": 1, "device": "cpu", "quiet": True}
    model = regard.train(**write(made, folder / "corpus"), output=folder / "model", recipe=recipe, **options)
    return model, [pair for pair in made.test if pair.pronoun and pair.pronoun.decides]


def test_pronouns_are_counted_as_by_a_loop_over_sentences(trained) -> None:
    model, pairs = trained
    test = PronounPredictions(model, pairs)
    for off in ((), (Head("encoder", 1, 2),), (Head("cross", 1, 1), Head("decoder", 1, 2))):
        assert test.right(off) == plain_right(model, pairs, off)
    assert test.commonest == max(Counter(pair.pronoun.antecedent_gender for pair in pairs).values())


def test_the_study_measures_every_head_and_removes_the_costliest_first(
    trained, monkeypatch: pytest.MonkeyPatch
) -> None:
    model, pairs = trained
    monkeypatch.setattr(AblationStudy, "guess", 0.2)
    found, test = study_heads(model, pairs), PronounPredictions(model, pairs)
    assert found.sentences == len(pairs)
    assert found.right == test.right()
    places = [Head(kind, 1, head) for kind in ("encoder", "decoder", "cross") for head in (1, 2)]
    assert {one.head: one.right for one in found.heads} == {place: test.right([place]) for place in places}
    for one in found.heads:
        shares = None
        if one.head.kind != "decoder":
            shares = head_shares(model, pairs, one.head.kind)[one.head.layer - 1, one.head.head - 1]
            mean = sum(share.antecedent for share in shares) / len(shares)
            assert one.shares.antecedent == pytest.approx(mean)
        assert (one.shares is None) == (shares is None)
    before: tuple[Head, ...] = ()
    for step in found.steps:
        assert step.heads[:-1] == before
        assert step.right == test.right(step.heads)
        rest = [place for place in places if place not in before]
        assert step.right == min(test.right([*before, place]) for place in rest)
        before = step.heads
    if found.smallest is None:
        assert len(found.steps) == len(places)
    else:
        assert found.smallest.right == test.right(found.smallest.heads) <= 0.2 * len(pairs)
        for fewer in combinations(found.smallest.heads, len(found.smallest.heads) - 1):
            assert test.right(fewer) > 0.2 * len(pairs) or fewer == found.smallest.heads[:-1]
    assert found.without_lookers.right == test.right(found.without_lookers.heads)
    assert found.to_dict()["spare"] == found.spare


@pytest.mark.parametrize("guess", [0.7, pytest.param(0.2, marks=pytest.mark.long(0.3))])
def test_every_number_of_the_walk_is_that_of_plain_loops(
    trained, monkeypatch: pytest.MonkeyPatch, guess: float
) -> None:
    model, pairs = trained
    monkeypatch.setattr(AblationStudy, "guess", guess)
    check_walk(json.loads(write_walk(study_heads(model, pairs), "0" * 64)), plain_walk(model, pairs, guess))


@pytest.mark.long(minutes=25)
def test_every_number_of_the_demonstrations_walk_is_that_of_plain_loops(tmp_path: Path) -> None:
    """``REGARD_DEMO`` names the folder of a demonstration that was made with seed 1; without it one is made."""
    named = os.environ.get("REGARD_DEMO")
    if named is None:
        demonstrate(tmp_path, threads=1)
    model = regard.load(Path(named or tmp_path) / "model", device="cpu")
    pairs = [pair for pair in corpus(TRAIN, VALID, TEST).test if pair.pronoun and pair.pronoun.decides][:SENTENCES]
    walk = Path(named or tmp_path) / "walk.json"
    raw = walk.read_bytes() if walk.exists() else write_walk(study_heads(model, pairs), "0" * 64)
    check_walk(json.loads(raw), plain_walk(model, pairs))


def check_walk(found: dict, expected: dict) -> None:
    names = {"format", "version", "weights", "sha256"}
    assert found["format"] == 1
    check_equal({name: value for name, value in found.items() if name not in names}, expected)


def test_a_guess_needs_no_removal_and_no_sentences_are_refused(trained, monkeypatch: pytest.MonkeyPatch) -> None:
    model, pairs = trained
    with refused(Stopped):
        study_heads(model, pairs, lambda: True)
    monkeypatch.setattr(AblationStudy, "guess", 1.0)
    found = study_heads(model, pairs)
    assert found.steps == ()
    assert found.smallest.heads == ()
    assert found.smallest.right == found.right
    with refused(RegardError, "model"):
        study_heads(model, [])
