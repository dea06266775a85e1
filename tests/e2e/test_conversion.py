"""Models brought in from the other library, used and begun from, and taken out again: the answers stay the same."""

import json
import random
from pathlib import Path
from typing import Any

import pytest

import regard as regard_package
from tests.runs.convert.small_folders import TEXTS, folder_of
from tests.runs.convert.small_peers import transformers
from tests.tasks.small_tasks import EVERY, put

Run = Any
"""The fixture ``regard``: words in; code, out, err."""


def there_and_back(kind: str, folder: Path, regard: Run, **changes: Any) -> None:
    """A small model brought in as ``ours`` and taken out again as ``back``."""
    folder_of(kind, folder / "theirs", **changes)
    done = regard("import", folder / "theirs", folder / "ours")
    assert (done.code, done.err) == (0, "")
    assert f"The model is in {folder / 'ours'}" in done.out
    done = regard("export", folder / "ours", folder / "back")
    assert (done.code, done.out, done.err) == (0, f"The model is in {folder / 'back'}.\n", "")


def pipeline(task: str, folder: Path, **options: Any) -> Any:
    return transformers.pipeline(task, model=str(folder), device="cpu", **options)


@pytest.mark.one_of(2)
@pytest.mark.parametrize("changes", [{}, {"problem_type": "multi_label_classification"}, {"labels": ("LABEL_0",)}])
def test_a_classifier(changes: dict[str, Any], tmp_path: Path, regard: Run) -> None:
    there_and_back("BertForSequenceClassification", tmp_path, regard, **changes)
    given = "".join(f"{text}\n" for text in TEXTS).encode()
    lines = regard("classify", tmp_path / "ours", "--all", stdin=given).out.splitlines()
    for place in ("theirs", "back"):
        for line, said in zip(lines, pipeline("text-classification", tmp_path / place)(TEXTS, top_k=None), strict=True):
            expected = {each["label"]: each["score"] for each in said}
            assert json.loads(line)["probabilities"] == pytest.approx(expected, abs=2e-6)


def test_guesses_of_masked_words(tmp_path: Path, regard: Run) -> None:
    there_and_back("BertForMaskedLM", tmp_path, regard)
    text, size = "a dog [MASK] over the grass.", 90
    (line,) = regard("fill", tmp_path / "ours", "-k", size, "--json", stdin=text.encode()).out.splitlines()
    found = {one["piece"]: one["probability"] for one in json.loads(line)["gaps"][0]}
    for place in ("theirs", "back"):
        said = pipeline("fill-mask", tmp_path / place)
        expected = {one["token_str"]: one["score"] for one in said(text, top_k=len(said.tokenizer))}
        assert expected.keys() - found.keys() <= {"[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"}
        assert found == pytest.approx({name: expected[name] for name in found}, abs=1e-6)


def test_a_language_model(tmp_path: Path, regard: Run) -> None:
    there_and_back("GPT2LMHeadModel", tmp_path, regard)
    said = regard("generate", tmp_path / "ours", "--prompt", "A dog", "--temperature", 0, "--max-tokens", 12)
    for place in ("theirs", "back"):
        write = pipeline("text-generation", tmp_path / place)
        (written,) = write("<|endoftext|>A dog", do_sample=False, max_new_tokens=12, return_full_text=False)
        assert said.out.removesuffix("\n") == written["generated_text"]


@pytest.mark.one_of(2)
@pytest.mark.parametrize("kind", ["BertModel", "BertForMaskedLM"])
def test_a_classifier_begun_from_an_encoder_of_others(kind: str, tmp_path: Path, regard: Run) -> None:
    there_and_back(kind, tmp_path, regard)
    draw, told, rows = random.Random(3), {"dog": "animal", "grass": "plant", "wall": "stone"}, []
    for _ in range(120):
        word = draw.choice(list(told))
        words = draw.sample([*draw.choices("a runs over the two men sit on is".split(), k=5), word], 6)
        rows.append(f"{' '.join(words)},{told[word]}\n")
    (tmp_path / "a.csv").write_text("text,label\n" + "".join(rows))
    given = ["--task", "classification", "--train", tmp_path / "a.csv", "--from", tmp_path / "ours", "--steps", 30]
    done = regard("train", *given, "--output", tmp_path / "model", "--threads", 1, "--set", "training.rate=0.01")
    assert done.code == 0, done.err
    before, task = (regard_package.load(tmp_path / name) for name in ("ours", "model"))
    assert task.recipe.data.max_tokens == task.recipe.model.max_positions == 40  # no longer than it has places for
    assert task.assets.tokenizer.sha256 == before.assets.tokenizer.sha256
    assert task.assets.fitted.temperature != 1.0
    assert regard("export", tmp_path / "model", tmp_path / "out").code == 0
    for text, said in zip(TEXTS, pipeline("text-classification", tmp_path / "out")(TEXTS), strict=True):
        found = task.classify(text)
        assert (found.label, found.probability) == (said["label"], pytest.approx(said["score"], abs=2e-6))


def test_what_is_wrong_is_one_sentence(tmp_path: Path, regard: Run) -> None:
    folder_of("BertModel", tmp_path / "theirs")
    put(tmp_path / "pre", EVERY["classifier"](norm_place="pre"))
    (tmp_path / "taken").mkdir()
    (tmp_path / "taken" / "thesis.txt").write_text("years")
    for words, code, said in (
        (("import", "absent", "ours"), 1, f"{tmp_path / 'absent'}: no such folder"),
        (("import", "pre", "ours"), 1, f"{tmp_path / 'pre'}: is a model of Regard already"),
        (("import", "taken", "ours"), 1, f"{tmp_path / 'taken'}: has no config.json, nor the files of another kind"),
        (("import", "theirs", "taken"), 1, f"{tmp_path / 'taken'}: holds something already; name a new folder"),
        (("export", "theirs", "out"), 1, "is no model folder"),
        (("export", "pre", "out"), 2, "model.norm_place: BERT has no form for 'pre', only for post"),
    ):
        command, *names = words
        regard(command, *(tmp_path / name for name in names)).refuses(said, code)
    assert [path.name for path in (tmp_path / "taken").iterdir()] == ["thesis.txt"]
    assert not (tmp_path / "out").exists()
    done = regard("train", "--task", "encoding", "--train", tmp_path / "a.csv", "--output", tmp_path / "new")
    assert "encoding is for encoders that regard import brings in" in done.sentence
    assert regard("export", tmp_path / "pre", tmp_path / "out", "--to", "onnx").code == 2
