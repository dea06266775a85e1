"""Labelled texts become a folder of ids: every text once, in its part, with its label; what is left out is named."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from regard.config import Recipe
from regard.data.corpora import scan
from regard.data.corpora.corpus import no_progress
from regard.data.corpora.labelled import open_labelled
from regard.data.corpora.scan import DataScan
from regard.data.prepare.encoders import ClassEncoder, LabelIds
from regard.data.prepare.folder import DataMismatch, PreparedExamples
from regard.data.prepare.windowing import Frame
from regard.system.errors import RegardError
from regard.tasks.text.preparation import prepare_texts
from regard.text.tokenizers.tokenizer import learn
from regard.text.tokenizers.vocabulary import read_tokenizer
from tests.refusals import refused

LABELS = ("a", "b", "c")


def prepared(
    path: Path, folder: Path, valid: Path | None = None, rests: Any = None, **sections: Any
) -> PreparedExamples:
    data = {"max_tokens": 16, "validation": 6, **sections.pop("data", {})}
    values = {"task": "classification", "data": data, "text": {"vocabulary": 300}, **sections}
    recipe = Recipe.model_validate(values)

    def learned(examples) -> ClassEncoder:
        tokenizer = learn([text for text, _ in examples.train_examples()], recipe.text.vocabulary)
        return ClassEncoder(tokenizer, Frame.of(tokenizer, recipe.data.max_tokens), LabelIds("single", LABELS))

    scanned = DataScan.of([open_labelled(path)], open_labelled(valid) if valid else None)
    return prepare_texts(scanned, recipe, folder, learned, rests or {}, no_progress)


def written(path: Path, rows: list[tuple[str, str]]) -> Path:
    path.write_text("text,label\n" + "".join(f"{text},{label}\n" for text, label in rows))
    return path


@pytest.fixture
def texts(tmp_path: Path) -> Path:
    draws = np.random.default_rng(1)
    rows = [(" ".join(draws.choice(["red", "house", "boat"], 3)) + f" n{n}", LABELS[n % 3]) for n in range(60)]
    return written(tmp_path / "a.csv", rows)


def said(made: PreparedExamples) -> tuple[list[tuple[str, str]], list[tuple[str, str]]]:
    """Every text with its label, of the training and of the validation part."""
    tokenizer = read_tokenizer(made.folder / "tokenizer.json")
    parts = (made.text, made.labels), (made.validation_text, made.validation_labels)
    train, validation = (
        [(tokenizer.decode(text.sentence(n)), LABELS[int(labels.sentence(n)[0])]) for n in range(text.count)]
        for text, labels in parts
    )
    return train, validation


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def test_every_text_stands_in_one_part_with_its_label_by_seed(texts: Path, tmp_path: Path) -> None:
    (train, validation), (_, other) = (said(prepared(texts, tmp_path / f"{n}", seed=n)) for n in (1, 2))
    assert len(validation) == 6
    assert sorted(train + validation) == sorted(open_labelled(texts).examples())
    assert other != validation


def test_what_was_prepared_is_used_again_to_the_byte(texts: Path, tmp_path: Path) -> None:
    first = prepared(texts, tmp_path / "data")
    before = {path.name: path.stat().st_mtime_ns for path in first.folder.iterdir()}
    assert prepared(texts, tmp_path / "data").fingerprint == first.fingerprint
    assert {path.name: path.stat().st_mtime_ns for path in first.folder.iterdir()} == before
    other = prepared(texts, tmp_path / "again")
    assert (other.fingerprint, contents(other.folder)) == (first.fingerprint, contents(first.folder))


def test_what_waits_is_bounded_by_characters_and_changes_no_byte(texts: Path, tmp_path: Path, monkeypatch) -> None:
    longest = max(len(text + label) for text, label in open_labelled(texts).examples())
    first = prepared(texts, tmp_path / "data")
    encode, encoded = ClassEncoder.encode, list[list[int]]()

    def noted(self: ClassEncoder, examples: Any, part: str) -> Any:
        encoded.append([len(text + label) for text, label in examples])
        return encode(self, examples, part)

    monkeypatch.setattr(scan, "CHARACTERS", 100)
    monkeypatch.setattr(ClassEncoder, "encode", noted)
    assert contents(prepared(texts, tmp_path / "again").folder) == contents(first.folder)
    assert sum(map(len, encoded)) == 60
    assert 100 <= max(map(sum, encoded)) < 100 + longest
    assert sum(sum(batch) >= 100 for batch in encoded) > 5


def test_what_rests_on_something_else_is_refused_by_name(texts: Path, tmp_path: Path) -> None:
    prepared(texts, tmp_path / "data")
    for changed, said in (
        ({"seed": 2}, "seed"),
        ({"data": {"max_tokens": 17}}, "data.max_tokens"),
        ({"data": {"validation": 5}}, "data.validation"),
        ({"text": {"vocabulary": 301}}, "text.vocabulary"),
        ({"text": {"vocabulary": 300, "lowercase": True}}, "text.lowercase"),
        ({"rests": {"kind": "multi"}}, "kind"),
    ):
        with refused(DataMismatch, tmp_path / "data", said):
            prepared(texts, tmp_path / "data", **changed)
    texts.write_text(texts.read_text().replace(",a", ",b", 1))
    with refused(DataMismatch, tmp_path / "data", "data"):
        prepared(texts, tmp_path / "data")


def test_given_validation_takes_the_place_of_a_split_and_is_not_learned_from(texts: Path, tmp_path: Path) -> None:
    valid = written(tmp_path / "v.csv", [("red moon", "c"), ("a boat", "a"), *[("zz zz", "c")] * 9])
    train, validation = said(prepared(texts, tmp_path / "data", valid))
    assert train == list(open_labelled(texts).examples())
    assert validation == list(open_labelled(valid).examples())
    tokenizer = read_tokenizer(tmp_path / "data" / "tokenizer.json")
    assert not any("zz" in tokenizer.piece(id) for id in range(tokenizer.size))


def test_what_is_left_out_is_counted_and_named(texts: Path, tmp_path: Path) -> None:
    texts.write_text(texts.read_text() + '" ",a\nhello,\n')
    valid = written(tmp_path / "v.csv", [("red", "a"), ("boat", ""), ("house", "b")])
    made = prepared(texts, tmp_path / "data", valid)
    places = {"empty": [f"{texts}:62"], "no label": [f"{texts}:63"], "validation": [f"{valid}:3"]}
    assert made.left_out["examples"] == places
    assert {kind: made.left_out["counts"][kind] for kind in places} == dict.fromkeys(places, 1)
    assert (made.count, made.validation_text.count) == (60, 2)


def test_where_nothing_is_left_or_all_is_alike_the_file_is_named(tmp_path: Path) -> None:
    path = written(tmp_path / "a.csv", [(f"text {n}", "") for n in range(20)])
    with refused(RegardError, path):
        prepared(path, tmp_path / "data")
    assert not (tmp_path / "data").exists()
    good = written(tmp_path / "b.csv", [(f"text {n}", "a") for n in range(20)])
    with refused(RegardError, path, "--valid"):
        prepared(good, tmp_path / "data", path)
    alike = written(tmp_path / "c.csv", [("text", "a")] * 40)
    with refused(RegardError, alike, "40", "--valid"):
        prepared(alike, tmp_path / "data")


def test_a_long_text_is_several_examples_with_one_label(texts: Path, tmp_path: Path) -> None:
    valid = written(tmp_path / "v.csv", [(" ".join(["house"] * 60 + ["boat"]), "b"), ("red", "c")])
    made = prepared(texts, tmp_path / "data", valid)
    labels = [label for _, label in said(made)[1]]
    assert len(labels) > 2
    assert labels == ["b"] * (len(labels) - 1) + ["c"]
    assert made.validation_text.longest <= 16
    assert made.validation_wholes.windows_B.tolist() == [len(labels) - 1, 1]
    assert (made.wholes.count, made.wholes.windows_B.sum()) == (60, made.count)
    old = prepared(texts, tmp_path / "data", valid)
    del old.index["wholes"]  # what an earlier version prepared is refused where it matters
    with refused(RegardError, tmp_path / "data", "--resume"):
        _ = old.wholes
