"""The trained test models have learned their data; their test data is disjoint from it."""

from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from regard.runs.demo.grammar import classic, words_of
from regard.training.checkpoints.checkpoint import weights
from tests.page.language import antecedent, digits, hidden, hidden_twice, language, pairs, spans
from tests.page.models import LESSONS, made, main, quality


def test_what_is_tested_was_not_learned_from() -> None:
    learned, tested = (
        {(one.verb_subject_object, one.noun_noun_adjective) for one in pairs(s)} for s in ("train", "test")
    )
    assert len(pairs("train")) > 1500
    assert len(pairs("test")) == 200
    assert not learned & tested
    words = [{word for one in pairs(split) for word in words_of(one.source)} for split in ("train", "test")]
    assert words[1] <= words[0]


def test_the_classic_sentences_belong_to_the_language() -> None:
    tired, wide = classic()
    assert language()[tired.source].target == tired.target
    assert (antecedent(tired), antecedent(wide)) == ("subject", "object")
    assert [(wide.source[begin:end], label) for begin, end, label in spans(wide)] == [
        ("The animal", "animal"),
        ("the street", "place"),
    ]
    assert hidden(wide) == "The animal didn't cross the [MASK] because it was too wide."
    assert hidden_twice(wide) == "The animal didn't cross <extra_0> because it was too <extra_1>"


def test_digits_stand_in_their_images() -> None:
    """A 1 and a 7 are drawn with the fewest dots."""
    images, labels = digits("train")
    assert (images.shape[1:], images.dtype, set(labels)) == ((8, 8), np.uint8, set(range(10)))
    ink = [images[labels == digit].mean() for digit in range(10)]
    assert set(np.argsort(ink)[:2]) == {1, 7}
    assert not np.array_equal(images[:100], digits("valid")[0])


@pytest.mark.long(minutes=0.3)
@pytest.mark.parametrize("name", LESSONS)
def test_models_have_learned(name: str, page_models: Path) -> None:
    made(name, page_models)
    assert quality(name, page_models) >= LESSONS[name].least


@pytest.mark.long(minutes=0.3)
def test_the_course_of_a_training_is_kept(page_models: Path) -> None:
    """At least three snapshots, each of other weights."""
    kept = sorted((made("translator", page_models) / "training" / "snapshots").iterdir())
    assert len(kept) >= 3
    biggest = [max(weights(one).values(), key=lambda tensor: tensor.numel()) for one in kept]
    assert all(not before.equal(after) for before, after in pairwise(biggest))


@pytest.mark.long(minutes=0.3)
def test_what_is_there_is_not_made_again(
    page_models: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = made("translator", page_models)
    before = (folder / "manifest.json").stat().st_mtime_ns
    monkeypatch.setattr("sys.argv", ["page_models.py", str(page_models), "translator"])
    main()
    assert (folder / "manifest.json").stat().st_mtime_ns == before
    name, seconds, unit, share = capsys.readouterr().out.split()
    assert (name, unit) == ("translator", "s")
    assert float(seconds) > 0
    assert float(share.rstrip("%")) == pytest.approx(100 * quality("translator", page_models), abs=0.1)
