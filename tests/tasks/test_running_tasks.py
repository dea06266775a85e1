"""Tasks on running text from files to a model: what is kept back, what is told, what is validated, how it ends."""

import json
import math
import random
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import regard
from regard.cli import main
from regard.config import Recipe
from regard.data.corpora.corpus import no_progress
from regard.data.prepare.folder import PreparedExamples
from regard.system.errors import RegardError, UsageError
from regard.tasks import job_class
from regard.tasks.language import training
from regard.tasks.language.generator import LanguageModel
from regard.tasks.language.masked import MaskedLm
from regard.tasks.language.training import LanguageModelTraining, VocabularySample, documents
from regard.tasks.protocols import InputFiles
from regard.tasks.training.base import ProductPaths
from tests.refusals import refused
from tests.tasks.small_tasks import evenly, shares
from tests.training.toy import Counting

TASKS = {"language-model": LanguageModel, "masked-lm": MaskedLm}
TINY = {"d_model": 32, "d_ff": 64, "heads": 2, "dropout": 0.0}
MODELS: dict[str, dict[str, Any]] = {
    "language-model": {**TINY, "layers": 1, "max_positions": 40},
    "masked-lm": {**TINY, "layers": 1, "max_positions": 40, "norm_place": "pre", "segments": 0},
}


def recipe(task: str, steps: int = 60) -> dict[str, Any]:
    return {
        "task": task,
        "text": {"vocabulary": 420, "units": "pieces"},
        "data": {"max_tokens": 24, "documents": "line"},
        "model": MODELS[task],
        "training": {"tokens": 256, "steps": steps, "validate_every": steps, "rate": 1e-2, "label_smoothing": 0.0},
    }


WORDS = "one two three four five six seven eight nine ten".split()
HERE: dict[str, Any] = {"device": "cpu", "threads": 1}
ONE_STEP = ("training.steps=1", "data.documents=line", "data.max_tokens=24")
LESSONS = {"masked-lm": 200}
"""Steps of a task whose lesson takes more than 60."""


def text(path: Path, count: int, seed: int = 1) -> Path:
    """Lines in which a word decides the next: counting up, each from another place."""
    draw = random.Random(seed)
    places = ((draw.randrange(10), draw.randint(4, 12)) for _ in range(count))
    path.write_text("".join(f"{' '.join((WORDS * 3)[begin : begin + length])}\n" for begin, length in places))
    return path


@pytest.fixture(scope="module")
def taught(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """A model of each task, on lines that count up."""
    folder = tmp_path_factory.mktemp("taught")
    path = text(folder / "a.txt", 400)
    found = {}
    for task in TASKS:
        told, lesson = Counting(), recipe(task, LESSONS.get(task, 60))
        model = regard.train(train=path, output=folder / task, recipe=lesson, reporter=told, **HERE, task=task)
        found[task] = (model, folder / task, told.events)
    return found


def test_words_and_pieces_that_training_never_saw_are_known(taught, tmp_path: Path) -> None:
    gap = {"masked-lm": " [MASK]", "language-model": ""}
    for task, (_, folder, told) in taught.items():
        assert any(re.match(r"400 documents, [\d,]+ characters", line) for line in told)
        model = regard.load(folder, device="cpu")
        assert isinstance(model, TASKS[task])
        tokenizer, unseen = model.source_tokenizer, model.unseen_pieces("source")
        lines = (folder.parent / "a.txt").read_text().splitlines()
        assert [word.word for word in model.unseen_words(f"{lines[0]} zebra{gap[task]} {lines[1]}")] == ["zebra"]
        assert model.unseen_words(lines[0]) == []
        some = [*lines[:20], f"ONE {lines[0]}", "", f"{lines[1]} zebra{gap[task]}", "one\u0308 TWO", *lines[:2]]
        assert model.unseen_words_batch(some) == [model.unseen_words(text) for text in some]
        assert "ONE" in {word.word for word in model.unseen_words("ONE")}  # never spelled so
        seen = {id for line in lines for id in tokenizer.encode(line).ids}
        assert not seen & unseen
        assert {id for id in tokenizer.ordinary.tolist() if id not in seen} <= unseen
    begun = {"train": text(tmp_path / "b.txt", 60), "start_from": taught["masked-lm"][1], "settings": ONE_STEP}
    model = regard.train(output=tmp_path / "begun", task="masked-lm", **begun, **HERE)
    assert (model.unseen_words("zebra"), model.unseen_pieces("source")) == (None, None)


def test_a_language_model_goes_on_counting_and_none_of_another_family_begins_from_it(taught, tmp_path: Path) -> None:
    model = taught["language-model"][0]
    (written,) = model.generate("one two three", max_tokens=12, temperature=0)
    assert written.text.startswith(" four five")
    good, bad = model.score("five six seven eight"), model.score("five nine one eight")
    assert good.log_probability > bad.log_probability + 2
    card = (taught["language-model"][1] / "card.md").read_text()
    assert all(measure in card for measure in ("per token", "per word", "bits per byte"))
    given = {"train": text(tmp_path / "a.txt", 60), "start_from": taught["language-model"][1], "settings": ONE_STEP}
    with pytest.raises(RegardError):
        regard.train(output=tmp_path / "a", task="masked-lm", **given, **HERE)


def test_masked_words_are_found(taught) -> None:
    model = taught["masked-lm"][0]
    counting = [[WORDS[(begin + place) % 10] for place in range(5)] for begin in range(10)]
    gaps = [model.fill(" ".join([*words[:2], "[MASK]", *words[3:]]), k=3)[0] for words in counting]
    assert sum(gap[0].piece == f"▁{words[2]}" for gap, words in zip(gaps, counting, strict=True)) >= 7
    for gap, words in zip(gaps, counting, strict=True):
        assert gap[0].text == " ".join([*words[:2], gap[0].piece[1:], *words[3:]])
    assert "guessed right" in (taught["masked-lm"][1] / "card.md").read_text()


def test_what_is_evaluated_is_what_training_would_have_ended_with(
    taught, tmp_path: Path, capsysbinary: pytest.CaptureFixture[bytes]
) -> None:
    held, folder = text(tmp_path / "v.txt", 30, 9), taught["masked-lm"][1]
    given = {"train": text(tmp_path / "a.txt", 60, 2), "valid": held, "start_from": folder, "task": "masked-lm"}
    regard.train(output=tmp_path / "model", settings=[*ONE_STEP, "seed=4"], **given, **HERE)
    card = (tmp_path / "model" / "card.md").read_text()
    command = ["evaluate", str(tmp_path / "model"), "--test", str(held), "--json", "--device", "cpu"]
    assert main(command) == 0
    found = json.loads(capsysbinary.readouterr().out)
    assert main([*command, "--processes", "2"]) == 0
    assert json.loads(capsysbinary.readouterr().out) == pytest.approx(found)
    assert f"* loss {found['loss']:.4f} nats" in card
    assert f"perplexity {found['perplexity']:.2f}" in card
    assert f"of {found['tokens']:,} tokens" in card
    assert f"* {found['accuracy']:.2f} % of them" in card
    assert found["accuracy"] == pytest.approx(100 * found["right"] / found["tokens"])


def job(task: str, given: InputFiles, documents: str = "line") -> Any:
    values = recipe(task)
    values["data"]["documents"] = documents
    return job_class(task).of_files(given, lambda count: Recipe(**values), lambda line: None, False)


def prepared_job(task: str, folder: Path) -> tuple[Any, PreparedExamples]:
    found = job(task, InputFiles([text(folder / "a.txt", 100)]))
    return found, found.prepare(folder / "data", no_progress)


@pytest.mark.one_of(3)
@pytest.mark.parametrize("task", TASKS)
def test_a_validation_is_always_the_same_and_its_samples_are_shown(tmp_path: Path, task: str) -> None:
    found, prepared = prepared_job(task, tmp_path)
    losses = []
    for _ in range(2):
        model = found.task.build(found.recipe, found.assets(prepared).sizes, 5).eval()
        teaching = found.teach(found.task(found.recipe, found.assets(prepared), model), prepared, ProductPaths())
        validation = teaching.validate(False)
        losses.append(validation.loss)
        assert len(validation.samples) == 2
        assert all(sample.source and sample.reference for sample in validation.samples)
    assert losses[0] == losses[1]
    assert losses[0] == pytest.approx(math.log(420), rel=0.3)
    assert prepared.validation_text.count == 10
    assert shares(teaching) == evenly(len(teaching.validation))
    assert shares(teaching, True) == []
    assert teaching.final_seconds(3.0, 3.0) == 3.0
    assert teaching.epochs >= 1
    assert "tokens to learn from" in teaching.data_lines()[0]


def test_the_loss_of_a_language_model_is_that_of_its_windows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found, prepared = prepared_job("language-model", tmp_path)
    model = LanguageModel.build(found.recipe, found.assets(prepared).sizes, 5).eval()
    task = LanguageModel(found.recipe, found.assets(prepared), model)
    teaching = LanguageModelTraining(task, prepared, ProductPaths(), 1)
    whole = list(documents(prepared.validation_text, task.symbols.end))
    assert all(ids[-1] == task.symbols.end for ids in whole)
    nats = np.concatenate(task.surprise(whole))
    assert teaching.validate(False).loss == pytest.approx(float(nats.mean()), rel=1e-5)
    (line, *_) = teaching.finish(task, lambda: False)
    assert line == f"* loss {nats.mean():.4f} nats a token, of {len(nats):,} tokens"
    monkeypatch.setattr(training, "VALIDATED", 40)
    few = LanguageModelTraining(task, prepared, ProductPaths(), 1)
    assert few.final_seconds(1.0, 1.0) == prepared.validation_text.tokens / 40
    assert sum(batch.tokens for batch in few.validation) < 80


@pytest.mark.parametrize("task", TASKS)
def test_what_is_given_to_validate_on_is_validated_on(tmp_path: Path, task: str) -> None:
    valid = text(tmp_path / "v.txt", 7, 9)
    given = InputFiles([text(tmp_path / "a.txt", 100), text(tmp_path / "b.txt", 50, 3)], valid)
    found = job(task, given)
    prepared = found.prepare(tmp_path / "data", no_progress)
    tokenizer = found.assets(prepared).tokenizer
    said = [tokenizer.decode(prepared.validation_text.sentence(number)) for number in range(7)]
    assert said == valid.read_text().splitlines()
    assert prepared.text.count == 150


def test_few_documents_give_their_end(tmp_path: Path) -> None:
    path = text(tmp_path / "a.txt", 300)
    raw = path.read_bytes().split(b"\n")
    path.write_bytes(b"\n".join([*raw[:3], raw[3] + b"\xff", *raw[4:]]))
    found = job("language-model", InputFiles([path]), "file")
    prepared = found.prepare(tmp_path / "data", no_progress)
    tokenizer, whole = found.assets(prepared).tokenizer, path.read_text(errors="replace")
    train, held = (side.sentence(0) for side in (prepared.text, prepared.validation_text))
    assert tokenizer.decode(train) + tokenizer.decode(held) == whole
    assert train[-1] != tokenizer.end  # the document goes on
    assert held[-1] == tokenizer.end
    assert abs(len(tokenizer.decode(held)) - len(whole) / 10) <= 1
    assert prepared.mended == [f"{path}:4: 1 line is not valid UTF-8; bytes became U+FFFD"]


def test_the_table_goes_by_characters_also_of_text_under_a_key_of_jsonl(tmp_path: Path) -> None:
    asked, path, made = list[int](), text(tmp_path / "a.txt", 100), Recipe(**recipe("language-model"))
    recipe_for = lambda count: asked.append(count) or made  # noqa: E731
    found = job_class("language-model").of_files(InputFiles([path]), recipe_for, lambda line: None, False)
    assert asked[-1] == found.characters == len(path.read_text()) - 100
    (tmp_path / "a.jsonl").write_text("".join(f'{{"body": "number {n:02d}"}}\n' for n in range(33)))
    assert job("masked-lm", InputFiles([tmp_path / "a.jsonl"], columns="body")).characters == 33 * 9
    with refused(RegardError, "a.jsonl:1", "'text'"):
        job("masked-lm", InputFiles([tmp_path / "a.jsonl"]))


@pytest.mark.parametrize("task", TASKS)
def test_where_nothing_but_white_space_is_kept_back_the_file_is_named(tmp_path: Path, task: str) -> None:
    path = tmp_path / "short.txt"
    path.write_text("one\ntwo\nthree\n")
    found = job(task, InputFiles([path]), "file")
    with refused(RegardError, path):
        found.prepare(tmp_path / "data", no_progress)
    with refused(UsageError, "columns"):  # plain text has none
        job(task, InputFiles([text(tmp_path / "a.txt", 60)], columns="2"))


def test_a_vocabulary_is_learned_from_some_of_very_much_text(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(training, "PART", 10)
    texts = [f"{n:05d}" * 20 for n in range(100)]

    def drawn(seed: int, most: int) -> list[str]:
        sample = VocabularySample(10_000, seed, most)
        for one in texts:
            sample.add(one)
        return sample.texts

    assert drawn(1, 10_000) == texts
    assert 1200 < sum(map(len, drawn(1, 2_000))) < 2800
    assert drawn(1, 2_000) == drawn(1, 2_000) != drawn(2, 2_000)
