"""What a person does with a file of labelled texts, one command after the other."""

import json
import random
from pathlib import Path
from typing import Any

import pytest

import regard as regard_package
from regard.cli import main
from tests.e2e.conftest import settings
from tests.tasks.classification.small_classifiers import WORDS, rows, written

Run = Any
"""The fixture ``regard``: words in; code, out, err."""
SMALL = settings(
    "text.vocabulary=320 model.d_model=32 model.d_ff=64 model.heads=2 model.layers=1 data.validation=20 "
    "data.max_tokens=32 training.product=exact training.rate=0.01"
)


def options(folder: Path, output: Path, *more: object, train: str = "a.csv") -> list[object]:
    given = ["--task", "classification", "--train", folder / train, "--output", output, "--steps", 40, "--threads", 1]
    return ["train", *given, *SMALL, *more]


@pytest.fixture(scope="module")
def taught(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with labelled texts and a finished ``model``; copy it before changing it."""
    folder = tmp_path_factory.mktemp("taught")
    written(folder / "a.csv", rows(240, 1))
    written(folder / "test.csv", rows(60, 2))
    assert main([str(word) for word in options(folder, folder / "model")]) == 0
    return folder


def test_the_folder_holds_what_is_promised(taught: Path) -> None:
    model = taught / "model"
    for name in ("recipe.toml", "model.safetensors", "tokenizer.json", "labels.json", "card.md", "manifest.json"):
        assert (model / name).is_file(), name
    card = (model / "card.md").read_text()
    assert "A text classifier" in card
    assert "3 labels" in card
    assert "calibration" in card
    kinds = {json.loads(line)["kind"] for line in (model / "training" / "metrics.jsonl").read_text().splitlines()}
    assert {"start", "step", "valid", "sample", "save"} <= kinds


def test_a_label_out_for_each_line_in(taught: Path, regard: Run) -> None:
    given = "\ufeffmy bread soup\r\n\nnear moon star\n".encode() + b"\xff the ball race"
    done = regard("classify", taught / "model", stdin=given)
    assert done.code == 0
    lines = done.out.split("\n")
    assert [line.partition("\t")[0] for line in lines] == ["food", "", "sky", "sport", ""]
    assert all(0 < float(line.partition("\t")[2]) <= 1 for line in lines if line)
    assert "1 line was not valid UTF-8 and had bytes replaced: 4" in done.err


def test_evaluation_says_what_the_model_is_worth_and_agrees_with_what_is_classified(taught: Path, regard: Run) -> None:
    values = json.loads(regard("evaluate", taught / "model", "--test", taught / "test.csv", "--json").out)
    assert values["texts"] == 60
    assert values["accuracy"] > 90
    assert set(values["classes"]) == set(WORDS)
    done = regard("evaluate", taught / "model", "--test", taught / "test.csv")
    assert done.code == 0
    assert f"accuracy {values['accuracy']:.2f}" in done.out
    assert "calibration error" in done.out
    assert [line.split()[0] for line in done.out.splitlines() if line.startswith(tuple(WORDS))] == sorted(WORDS)
    texts, labels = zip(
        *(row.rsplit(",", 1) for row in (taught / "test.csv").read_text().splitlines()[1:]), strict=True
    )
    done = regard("classify", taught / "model", stdin="".join(f"{text}\n" for text in texts).encode())
    said = [line.partition("\t")[0] for line in done.out.splitlines()]
    right = sum(one == label for one, label in zip(said, labels, strict=True))
    assert values["accuracy"] == pytest.approx(100 * right / 60)


def test_vectors_of_texts_and_tokens(taught: Path, regard: Run, tmp_path: Path) -> None:
    import numpy as np

    done = regard("encode", taught / "model", "--normalise", stdin=b"my bread\n\nthe ball\n")
    first, empty, _ = (json.loads(line) for line in done.out.splitlines())
    assert first["text"] == "my bread"
    assert np.linalg.norm(first["vector"]) == pytest.approx(1)
    assert empty["vector"] == [0.0] * 32
    done = regard("encode", taught / "model", "--each", "token", stdin="my bre\u0301ad\n\n".encode())
    first, empty = (json.loads(line) for line in done.out.splitlines())
    assert empty["tokens"] == []
    assert first["text"] == "my br\u00e9ad"  # as the model sees it
    pieces = {(token["start"], token["end"]) for token in first["tokens"]}
    assert "".join(first["text"][begin:end] for begin, end in sorted(pieces)) == first["text"]
    path = tmp_path / "vectors.npz"
    done = regard("encode", taught / "model", "--output", path, "--pool", "first", stdin=b"my bread\n\nthe ball\n")
    assert (done.code, done.out) == (0, "")
    with np.load(path) as arrays:
        assert arrays["vectors"].shape == (3, 32)
        assert not arrays["vectors"][1].any()


def test_a_model_begins_from_another(taught: Path, tmp_path: Path, regard: Run) -> None:
    """Its encoder and vocabulary are taken over, the head is fresh; the labels are other ones."""
    written(tmp_path / "b.csv", rows(120, 3, ("food", "sky")))
    more = ["--task", "classification", "--train", tmp_path / "b.csv", "--steps", 5, "--threads", 1]
    done = regard(
        "train", *more, "--from", taught / "model", "--output", tmp_path / "new", "--set", "data.max_tokens=32"
    )
    assert done.code == 0, done.err
    old, new = (regard_package.load(folder, device="cpu") for folder in (taught / "model", tmp_path / "new"))
    assert new.assets.labels == ("food", "sky")
    assert new.assets.tokenizer.sha256 == old.assets.tokenizer.sha256
    assert new.recipe.model == old.recipe.model


def test_numbers_are_learned_and_printed(tmp_path: Path, regard: Run) -> None:
    draw = random.Random(4)
    texts = [draw.choices("good bad the a".split(), k=6) for _ in range(200)]
    lines = [f"{' '.join(words)},{(words.count('good') - words.count('bad')) / 6:.2f}\n" for words in texts]
    (tmp_path / "a.csv").write_text("text,score\n" + "".join(lines))
    kind = ["--set", "classification.kind=regression", "--set", "training.label_smoothing=0"]
    done = regard(*options(tmp_path, tmp_path / "model", *kind))
    assert done.code == 0, done.err
    done = regard("classify", tmp_path / "model", stdin=b"good good the\n\nbad bad the\n")
    high, empty, low = done.out.split("\n")[:3]
    assert empty == ""
    assert float(high) > float(low)
    done = regard("classify", tmp_path / "model", "--json", stdin=b"good good the\n\n")
    assert json.loads(done.out.splitlines()[0])["value"] == pytest.approx(float(high), abs=1e-4)
    assert json.loads(done.out.splitlines()[1]) == {"value": None, "unseen": []}
    values = json.loads(regard("evaluate", tmp_path / "model", "--test", tmp_path / "a.csv", "--json").out)
    assert values["pearson"] > 0.5
    assert regard("classify", tmp_path / "model", "--threshold", "0.5", stdin=b"a\n").code == 2


def test_several_labels_are_learned_and_printed(tmp_path: Path, regard: Run) -> None:
    draw, lines = random.Random(6), []
    for _ in range(300):
        labels = [label for label in WORDS if draw.random() < 0.5]
        words = [draw.choice(WORDS[label].split()) for label in labels for _ in range(2)] + ["the", "my"]
        lines.append(json.dumps({"text": " ".join(draw.sample(words, len(words))), "labels": labels}) + "\n")
    (tmp_path / "a.jsonl").write_text("".join(lines))
    kind = ["--set", "classification.kind=multi"]
    done = regard(*options(tmp_path, tmp_path / "model", *kind, train="a.jsonl"))
    assert done.code == 0, done.err
    done = regard("classify", tmp_path / "model", stdin=b"bread soup the ball race my\nthe my\n")
    both, none = (line.partition("\t") for line in done.out.splitlines())
    assert set(both[0].split("|")) == {"food", "sport"}
    assert none[0] == ""
    found = json.loads(regard("classify", tmp_path / "model", "--json", stdin=b"the my\n").out)
    assert found["labels"] == []
    done = regard("classify", tmp_path / "model", "--json", "--threshold", "0", stdin=b"the my\n")
    assert set(json.loads(done.out)["labels"]) == set(WORDS)
    values = json.loads(regard("evaluate", tmp_path / "model", "--test", tmp_path / "a.jsonl", "--json").out)
    assert values["micro"]["f1"] > 80
