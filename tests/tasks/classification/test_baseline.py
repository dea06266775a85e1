"""The simple baseline beside a classifier: what it scores, and where it is shown."""

import re
from pathlib import Path

import pytest

from regard.tasks.classification import baseline
from tests.tasks.classification.small_classifiers import WORDS, rows, taught, written

NAMES = sorted(WORDS)


def test_it_scores_what_scikit_learn_scores() -> None:
    pytest.importorskip("sklearn")
    from sklearn.feature_extraction.text import TfidfVectorizer
    from sklearn.svm import LinearSVC

    train, held = rows(60), rows(60, seed=8)
    found = baseline.score_baseline(
        [text for text, _ in train],
        [NAMES.index(label) for _, label in train],
        [text for text, _ in held],
        [NAMES.index(label) for _, label in held],
        3,
    )
    words = TfidfVectorizer(ngram_range=(1, 2), sublinear_tf=True)
    alone = LinearSVC().fit(words.fit_transform([text for text, _ in train]), [label for _, label in train])
    right = alone.score(words.transform([text for text, _ in held]), [label for _, label in held])
    assert found is not None
    accuracy, macro_f1 = map(float, re.findall(r"\d+\.\d\d", found))
    assert accuracy >= 100 * right - 3
    assert 0 < macro_f1 <= 100


def test_texts_without_words_have_none(tmp_path: Path) -> None:
    """Words of one letter are none to scikit-learn; the run ends all the same."""
    pytest.importorskip("sklearn")
    assert baseline.score_baseline(["? ?", "! !"], [0, 1], ["?"], [0], 2) is None
    signs = [("? ! " * (place % 5 + 1) + "." * (place % 7), "ask") for place in range(30)]
    signs += [("- : " * (place % 5 + 1) + "." * (place % 7), "tell") for place in range(30)]
    taught(tmp_path / "model", written(tmp_path / "a.csv", signs), steps=2)
    card = (tmp_path / "model" / "card.md").read_text()
    assert "accuracy" in card
    assert "scikit-learn" not in card


def test_the_card_shows_it_beside_the_model(tmp_path: Path) -> None:
    pytest.importorskip("sklearn")
    taught(tmp_path / "model", written(tmp_path / "a.csv", rows(120)), steps=2)
    assert "linear SVM on TF-IDF n-grams (scikit-learn" in (tmp_path / "model" / "card.md").read_text()


def test_without_scikit_learn_nothing_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(baseline, "available", lambda: False)
    taught(tmp_path / "model", written(tmp_path / "a.csv", rows(60)), steps=2)
    assert "scikit-learn" not in (tmp_path / "model" / "card.md").read_text()
