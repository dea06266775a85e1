"""Labelled texts become a folder of ids: every text once, in its part, with its label; what is left out is named."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from regard.config import Recipe
from regard.data.batches.texts import Examples
from regard.data.corpora import blocks
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
from tests.data.prepare.full_disk import named_when_full
from tests.refusals import refused

LABELS = ("a", "b", "c")


def recipe(**sections: Any) -> Recipe:
    data = {"max_tokens": 16, "validation": 6, **sections.pop("data", {})}
    return Recipe.model_validate({"task": "classification", "data": data, "text": {"vocabulary": 300}, **sections})


def prepared(
    path: Path, folder: Path, valid: Path | None = None, rests: Any = None, **sections: Any
) -> PreparedExamples:
    chosen = recipe(**sections)

    def learned(examples) -> ClassEncoder:
        tokenizer = learn([text for text, _ in examples.train_examples()], chosen.text.vocabulary)
        return ClassEncoder(tokenizer, Frame.of(tokenizer, chosen.data.max_tokens), LabelIds("single", LABELS))

    scanned = DataScan.of([open_labelled(path)], open_labelled(valid) if valid else None)
    return prepare_texts(scanned, chosen, folder, learned, rests or {}, no_progress)


def written(path: Path, rows: list[tuple[str, str]]) -> Path:
    path.write_text("text,label\n" + "".join(f"{text},{label}\n" for text, label in rows))
    return path


@pytest.fixture
def texts(tmp_path: Path) -> Path:
    draws = np.random.default_rng(1)
    rows = [(" ".join(draws.choice(["red", "house", "boat"], 3)) + f" n{n}", LABELS[n % 3]) for n in range(60)]
    return written(tmp_path / "a.csv", rows)


def test_a_full_disk_names_the_file(texts: Path, tmp_path: Path) -> None:
    named = named_when_full(lambda: prepared(texts, tmp_path / "data"))
    assert sorted(named) == sorted(path.name for path in (tmp_path / "data").iterdir())
    assert len(named) > 10


def said(made: PreparedExamples, folder: Path) -> dict[str, list[tuple[str, str]]]:
    """Every text with its label, by part."""
    tokenizer = read_tokenizer(folder / "tokenizer.json")
    parts = {"train": (made.text, made.labels), "validation": (made.validation_text, made.validation_labels)}
    return {
        name: [
            (tokenizer.decode(text.sentence(place)), LABELS[int(labels.sentence(place)[0])])
            for place in range(text.count)
        ]
        for name, (text, labels) in parts.items()
    }


def test_every_text_stands_in_one_part_with_its_label(texts: Path, tmp_path: Path) -> None:
    found = said(prepared(texts, tmp_path / "data"), tmp_path / "data")
    assert len(found["validation"]) == 6
    assert sorted(found["train"] + found["validation"]) == sorted(open_labelled(texts).examples())


def test_what_was_prepared_is_used_again_to_the_byte(texts: Path, tmp_path: Path) -> None:
    first = prepared(texts, tmp_path / "data")
    before = {path.name: path.stat().st_mtime_ns for path in (tmp_path / "data").iterdir()}
    assert prepared(texts, tmp_path / "data").fingerprint == first.fingerprint
    assert {path.name: path.stat().st_mtime_ns for path in (tmp_path / "data").iterdir()} == before
    other = prepared(texts, tmp_path / "again")
    assert other.fingerprint == first.fingerprint
    for path in (tmp_path / "data").iterdir():
        assert path.read_bytes() == (tmp_path / "again" / path.name).read_bytes()


def test_what_waits_is_bounded_by_characters_and_changes_no_byte(texts: Path, tmp_path: Path, monkeypatch) -> None:
    longest = max(len(text + label) for text, label in open_labelled(texts).examples())
    prepared(texts, tmp_path / "data")
    encode, encoded = ClassEncoder.encode, list[list[int]]()

    def noted(self: ClassEncoder, examples: Any, part: str) -> Any:
        encoded.append([len(text + label) for text, label in examples])
        return encode(self, examples, part)

    monkeypatch.setattr(blocks, "CHARACTERS", 100)
    monkeypatch.setattr(ClassEncoder, "encode", noted)
    prepared(texts, tmp_path / "again")
    assert sum(map(len, encoded)) == 60
    assert 100 <= max(map(sum, encoded)) < 100 + longest
    assert sum(sum(batch) >= 100 for batch in encoded) > 5
    for path in (tmp_path / "data").iterdir():
        assert path.read_bytes() == (tmp_path / "again" / path.name).read_bytes()


def test_another_seed_holds_other_texts_back(texts: Path, tmp_path: Path) -> None:
    parts = [said(prepared(texts, tmp_path / f"{n}", seed=n), tmp_path / f"{n}") for n in (1, 2)]
    assert parts[0]["validation"] != parts[1]["validation"]


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"seed": 2}, "seed"),
        ({"data": {"max_tokens": 17}}, "data.max_tokens"),
        ({"data": {"validation": 5}}, "data.validation"),
        ({"text": {"vocabulary": 301}}, "text.vocabulary"),
        ({"text": {"vocabulary": 300, "lowercase": True}}, "text.lowercase"),
        ({"rests": {"kind": "multi"}}, "kind"),
    ],
)
def test_what_rests_on_something_else_is_refused_by_name(texts: Path, tmp_path: Path, changed, said: str) -> None:
    prepared(texts, tmp_path / "data")
    with refused(DataMismatch, tmp_path / "data", said):
        prepared(texts, tmp_path / "data", **changed)


def test_a_label_that_changed_is_other_data(texts: Path, tmp_path: Path) -> None:
    prepared(texts, tmp_path / "data")
    texts.write_text(texts.read_text().replace(",a", ",b", 1))
    with refused(DataMismatch, tmp_path / "data", "data"):
        prepared(texts, tmp_path / "data")


def test_given_validation_takes_the_place_of_a_split(texts: Path, tmp_path: Path) -> None:
    valid = written(tmp_path / "v.csv", [("red moon", "c"), ("a boat", "a")])
    found = said(prepared(texts, tmp_path / "data", valid), tmp_path / "data")
    assert found["validation"] == [("red moon", "c"), ("a boat", "a")]
    assert found["train"] == list(open_labelled(texts).examples())


def test_the_vocabulary_is_learned_from_what_is_learned_from(texts: Path, tmp_path: Path) -> None:
    valid = written(tmp_path / "v.csv", [("zzzz zzzz zzzz zzzz", "c")] * 9)
    prepared(texts, tmp_path / "data", valid)
    tokenizer = read_tokenizer(tmp_path / "data" / "tokenizer.json")
    assert not any("zz" in tokenizer.piece(id) for id in range(tokenizer.size))


def test_what_is_left_out_is_counted_and_named(texts: Path, tmp_path: Path) -> None:
    rows = texts.read_text() + '" ",a\nhello,\n'
    texts.write_text(rows)
    valid = written(tmp_path / "v.csv", [("red", "a"), ("boat", ""), ("house", "b")])
    made = prepared(texts, tmp_path / "data", valid)
    counts = made.left_out["counts"]
    assert (counts["empty"], counts["no label"], counts["validation"]) == (1, 1, 1)
    assert made.left_out["examples"] == {
        "empty": [f"{texts}:62"],
        "no label": [f"{texts}:63"],
        "validation": [f"{valid}:3"],
    }
    assert (made.count, made.validation_text.count) == (60, 2)


def test_where_nothing_is_left_it_is_said(tmp_path: Path) -> None:
    path = written(tmp_path / "a.csv", [(f"text {n}", "") for n in range(20)])
    with refused(RegardError, path):
        prepared(path, tmp_path / "data")
    assert not (tmp_path / "data").exists()
    good = written(tmp_path / "b.csv", [(f"text {n}", "a") for n in range(20)])
    with refused(RegardError, path, "--valid"):
        prepared(good, tmp_path / "data", path)


def test_examples_that_are_too_alike_are_said_with_their_file(tmp_path: Path) -> None:
    path = written(tmp_path / "a.csv", [("text", "a")] * 40)
    with refused(RegardError, path, "40", "--valid"):
        prepared(path, tmp_path / "data")


def test_a_long_text_is_several_examples_with_one_label(texts: Path, tmp_path: Path) -> None:
    valid = written(tmp_path / "v.csv", [(" ".join(["house"] * 60 + ["boat"]), "b"), ("red", "c")])
    made = prepared(texts, tmp_path / "data", valid)
    labels = [int(made.validation_labels.sentence(place)[0]) for place in range(made.validation_labels.count)]
    assert len(labels) > 2
    assert labels == [1] * (len(labels) - 1) + [2]
    assert made.validation_text.longest <= 16
    assert made.validation_wholes.windows_B.tolist() == [len(labels) - 1, 1]
    assert (made.wholes.count, made.wholes.windows_B.sum()) == (60, made.count)


def test_what_an_earlier_version_prepared_is_refused_where_it_matters(texts: Path, tmp_path: Path) -> None:
    made = prepared(texts, tmp_path / "data")
    del made.index["wholes"]
    with refused(RegardError, tmp_path / "data", "--resume"):
        _ = made.wholes


def test_batches_hold_every_text_beside_its_labels(texts: Path, tmp_path: Path) -> None:
    made = prepared(texts, tmp_path / "data")
    examples = Examples.of(made.text, made.labels, 64)
    found = []
    for batch in examples.all():
        assert batch.room == 64
        assert batch.tokens == batch.text.lengths_B.sum() <= 64
        assert batch.counts_B.tolist() == [1] * batch.text.count
        ends = np.cumsum(batch.text.lengths_B[: batch.text.count])
        for place, end, label in zip(batch.sentences, ends, batch.labels_X, strict=True):
            ids = made.text.sentence(int(place))
            assert batch.text.ids_T[end - len(ids) : end].tolist() == ids.tolist()
            assert made.labels.sentence(int(place)).tolist() == [label]
            found.append(int(place))
    assert found == list(range(made.count))


def test_an_epoch_of_the_feed_has_every_text_once(texts: Path, tmp_path: Path) -> None:
    made = prepared(texts, tmp_path / "data")
    examples = Examples.of(made.text, made.labels, 64)
    feed = examples.feed(recipe(), made.fingerprint, examples.plain)
    seen: dict[int, list[int]] = {0: [], 1: []}
    epoch = 0
    for batch, position in feed.iterate():
        seen[epoch] += batch.sentences.tolist()
        epoch = position.epoch
        if epoch == 2:
            break
    assert sorted(seen[0]) == sorted(seen[1]) == list(range(made.count))
    assert seen[0] != seen[1]
