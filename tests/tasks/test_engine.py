"""When the engine computes a task, and when the model itself does."""

import os
import subprocess
import sys
import threading
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import regard
from regard import kernels
from regard.models.store import named_tensors
from regard.nn.hooks import capture
from regard.system.errors import Damaged, RegardError
from regard.tasks.classification.ngrams import fit
from regard.tasks.engine import engine_of, step_of
from regard.tasks.model_folder import GPUS, load, open_without_torch
from regard.tasks.text.encoding import ImageVectors, TextVectors
from regard.tasks.text.labels import FittedValues
from tests.refusals import refused
from tests.tasks.small_tasks import (
    BOTH_TEXTS,
    GAPPED,
    SOURCE,
    SPANNED,
    asker,
    classifier,
    encoder,
    filler,
    pairs,
    put,
    reader,
    recurrent,
    spanner,
    speaker,
    stepper,
    tagger,
    translator,
    viewer,
)

TEXTS = [SOURCE, "The street", "", "was too tired because"]


@pytest.fixture(autouse=True)
def _compiled() -> None:
    if not kernels.available():
        pytest.skip("no compiler was there when Regard was installed")


def by_engine(task: Any) -> bool:
    return engine_of(task) is not None


@pytest.mark.parametrize("make", [translator, asker])
def test_a_folder_is_opened_without_its_model_and_says_the_same(make: Any, tmp_path: Path) -> None:
    folder = put(tmp_path / "m", make())
    task, plain = open_without_torch(folder, "cpu"), load(folder, "cpu")
    assert type(task) is type(plain)
    assert task.device_name == "cpu"
    assert by_engine(task)
    assert not by_engine(plain)
    for found, expected in zip(task.nbest(TEXTS, 3, 3), plain.nbest(TEXTS, 3, 3), strict=True):
        assert [one.tokens for one in found] == [one.tokens for one in expected]
        assert [one.score for one in found] == pytest.approx([one.score for one in expected], rel=1e-4)
    assert torch.equal(task.model.output.weight, plain.model.output.weight)  # somebody looks inside


def test_the_first_command_loads_no_torch(tmp_path: Path) -> None:
    folder, code = (
        put(tmp_path / "m", translator()),
        """
import sys
from regard.cli import main
code = main(sys.argv[1:])
print(code, "torch" in sys.modules)
""",
    )
    command = [sys.executable, "-c", code, "translate", str(folder), SOURCE, "--device", "cpu"]
    result = subprocess.run(command, capture_output=True, text=True, check=True)
    text, ended = result.stdout.splitlines()
    assert text == load(folder, "cpu").translate(SOURCE)
    assert ended == "0 False"
    off = subprocess.run(
        command, env=os.environ | {kernels.VARIABLE: "off"}, capture_output=True, text=True, check=True
    )
    assert off.stdout.splitlines() == [text, "0 True"]


def test_many_lines_are_divided_among_processes_without_torch(tmp_path: Path) -> None:
    folder, given, out = put(tmp_path / "m", translator()), tmp_path / "in", tmp_path / "out"
    given.write_text("".join(f"{SOURCE[: n % 40]}\n" for n in range(3000)))
    code = "import sys; from regard.cli import main; print(main(sys.argv[1:]), 'torch' in sys.modules)"
    command = [sys.executable, "-c", code, "translate", str(folder), "--input", str(given), "--beam", "1"]
    for name, more in (("one", ["--threads", "1"]), ("two", ["--threads", "2"])):
        made = [*command, "--output", str(tmp_path / name), "--device", "cpu", *more]
        assert subprocess.run(made, capture_output=True, text=True, check=True).stdout == "0 False\n"
    assert (tmp_path / "one").read_bytes() == (tmp_path / "two").read_bytes()
    assert not out.exists()


def both(folder: Path, task: Any) -> tuple[Any, Any]:
    """A task computed by its engine, and the same by its model."""
    put(folder, task)
    return open_without_torch(folder, "cpu"), load(folder, "cpu")


INFINITE = [translator, asker, classifier, pairs, reader, tagger, stepper, filler, encoder, speaker, spanner]


@pytest.mark.parametrize("make", INFINITE)
def test_weights_that_are_not_finite_are_refused_by_name(make: Any, tmp_path: Path) -> None:
    """Whatever reads them, and whichever they are: matrices, tables, norms."""
    task = make()
    names = list(named_tensors(task.model))
    for number, (value, name) in enumerate(zip([np.nan, np.inf], [names[0], names[-1]], strict=True)):
        changed = make()
        with torch.no_grad():
            named_tensors(changed.model)[name].view(-1)[-1] = value
        folder = put(tmp_path / str(number), changed)
        for opened in (open_without_torch, load):
            with refused(RegardError, folder / "model.safetensors", repr(name)):
                opened(folder, "cpu")


ANSWERS: list[tuple[Any, Any]] = [
    (classifier, lambda task: task.classify(SOURCE)),
    (lambda: classifier("multi"), lambda task: task.classify(SOURCE)),
    (lambda: classifier("regression"), lambda task: task.classify(SOURCE)),
    (tagger, lambda task: task.tag(SOURCE)),
    (filler, lambda task: task.fill(GAPPED)),
    (encoder, lambda task: TextVectors(task).texts([SOURCE])),
    (encoder, lambda task: TextVectors(task).tokens([SOURCE])),
    (viewer, lambda task: task.classify(np.zeros(24))),
    (viewer, lambda task: ImageVectors(task).images([np.zeros(24)])),
    (lambda: tagger(crf=True), lambda task: task.tag(SOURCE)),
]


@pytest.mark.parametrize(("make", "answer"), ANSWERS)
def test_large_weights_are_finite_but_not_what_is_computed_of_them(make: Any, answer: Any, tmp_path: Path) -> None:
    """Their sum in single precision may be not, either."""
    task = make()
    with torch.no_grad():
        for weight in named_tensors(task.model).values():
            weight.copy_(torch.where(weight < 0, -3e38, 3e38))
    fast, plain = both(tmp_path / "m", task)
    assert fast is None or by_engine(fast)
    for opened in filter(None, (fast, plain)):
        with refused(RegardError, None, "not finite"), np.errstate(all="ignore"):
            answer(opened)


LONG = " ".join([SOURCE] * 4)
"""A text that is read in several windows."""


@pytest.mark.parametrize("kind", ["single", "multi", "regression"])
@pytest.mark.parametrize("model", [{}, {"pool": "mean", "positions": "alibi"}, {"word_features": 50, "norm": "rms"}])
def test_texts_are_labelled_as_by_the_model(kind: str, model: dict[str, Any], tmp_path: Path) -> None:
    task, plain = both(tmp_path / "m", classifier(kind, **model))
    texts = [*TEXTS, LONG]
    np.testing.assert_allclose(task.scores(texts), plain.scores(texts), rtol=1e-4, atol=1e-5)
    labels = [[found.labels for found in one.classify(texts, 0.4)] for one in (task, plain)]
    assert labels[0] == labels[1]
    assert by_engine(task)


def test_threads_that_read_batches_change_no_bit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    task = regard.Classifier.load(put(tmp_path / "m", classifier(word_features=50)), "cpu")
    monkeypatch.setattr("regard.tasks.text.task.LEAST_ROOM", 64)
    texts, found = [SOURCE[n % 30 :] for n in range(60)], []
    for threads in (1, 3):
        monkeypatch.setattr("regard.tasks.text.task.engine_threads", lambda threads=threads: threads)
        found.append(task.scores(texts).tolist())
    assert found[0] == found[1]
    assert by_engine(task)


def test_ngrams_are_added_to_the_scores_of_the_engine_too(tmp_path: Path) -> None:
    ngrams, made = fit([SOURCE, "street", "tired"], np.eye(3, dtype=np.bool_)), classifier()
    plain_scores = made.scores(TEXTS)
    made.assets = replace(made.assets, ngrams=ngrams, fitted=FittedValues(1.5, ngrams=2.0))
    task, plain = both(tmp_path / "m", made)
    np.testing.assert_allclose(task.scores(TEXTS), plain.scores(TEXTS), rtol=1e-4, atol=1e-5)
    assert np.abs(task.scores(TEXTS) - plain_scores).max() > 0.1


def test_pairs_are_labelled_as_by_the_model(tmp_path: Path) -> None:
    task, plain = both(tmp_path / "m", pairs())
    given = [BOTH_TEXTS, f"{LONG} [SEP] tired"]
    np.testing.assert_allclose(task.scores(given), plain.scores(given), rtol=1e-4, atol=1e-5)


def test_a_recurrence_labels_texts_as_by_torch(tmp_path: Path) -> None:
    task, plain = both(tmp_path / "m", reader())
    np.testing.assert_allclose(task.scores([*TEXTS, LONG]), plain.scores([*TEXTS, LONG]), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("make", [tagger, lambda: tagger(crf=True), stepper])
def test_words_are_tagged_as_by_the_model(make: Any, tmp_path: Path) -> None:
    task, plain = both(tmp_path / "m", make())
    for found, expected in zip(task.tag([*TEXTS, LONG]), plain.tag([*TEXTS, LONG]), strict=True):
        assert found.tags == expected.tags
        np.testing.assert_allclose(found.probabilities, expected.probabilities, atol=1e-5)


def test_gaps_are_filled_as_by_the_model(tmp_path: Path) -> None:
    task, plain = both(tmp_path / "m", filler())
    for found, expected in zip(task.fill(GAPPED, 3), plain.fill(GAPPED, 3), strict=True):
        assert [one.text for one in found] == [one.text for one in expected]
        np.testing.assert_allclose([x.probability for x in found], [x.probability for x in expected], rtol=1e-4)


@pytest.mark.parametrize("options", [{"temperature": 0.0}, {"top_k": 5}, {"repetition_penalty": 1.5, "n": 3}])
def test_prompts_are_continued_as_by_the_model(options: dict[str, Any], tmp_path: Path) -> None:
    """Beyond the window, too."""
    task, plain = both(tmp_path / "m", speaker())
    for prompt in ("", SOURCE, LONG):
        found, expected = (one.generate(prompt, max_tokens=60, **options) for one in (task, plain))
        assert [one.tokens for one in found] == [one.tokens for one in expected]
        found, expected = ([x.log_probability for x in group] for group in (found, expected))
        np.testing.assert_allclose(found, expected, rtol=1e-4)
    assert by_engine(task)


@pytest.mark.parametrize(
    "make", [encoder, classifier, reader, tagger, stepper, filler, speaker, spanner, asker, translator]
)
def test_vectors_are_those_of_the_model(make: Any, tmp_path: Path) -> None:
    task, plain = both(tmp_path / "m", make())
    for layer in (None, 1):
        found, expected = (TextVectors(one, layer).texts([*TEXTS, LONG]) for one in (task, plain))
        np.testing.assert_allclose(found, expected, atol=1e-5)


@pytest.mark.one_of(3)
@pytest.mark.parametrize(
    ("make", "words"),
    [
        (classifier, ["classify"]),
        (reader, ["classify"]),
        (stepper, ["tag"]),
        (pairs, ["classify"]),
        (tagger, ["tag"]),
        (lambda: tagger(crf=True), ["tag", "--json"]),
        (filler, ["fill"]),
        (spanner, ["ask"]),
        (speaker, ["generate", "--max-tokens", "9"]),
        (speaker, ["generate", "--json", "--n", "2", "--max-tokens", "9"]),
        (encoder, ["encode"]),
        (speaker, ["encode", "--each", "token"]),
    ],
)
def test_commands_answer_without_torch(make: Any, words: list[str], tmp_path: Path) -> None:
    task = make()
    folder = put(tmp_path / "m", task)
    given = {"fill": GAPPED, "ask": SPANNED}.get(words[0], BOTH_TEXTS if task.info.texts == 2 else SOURCE)
    code = "import sys; from regard.cli import main; print(main(sys.argv[1:]), 'torch' in sys.modules)"
    command = [sys.executable, "-c", code, words[0], str(folder), given, *words[1:], "--device", "cpu"]
    done = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()
    assert done[-1] == "0 False"
    assert len(done) > 1


@pytest.mark.parametrize("make", [classifier, tagger, speaker])
def test_a_file_with_a_weight_too_many_is_refused(make: Any, tmp_path: Path) -> None:
    folder, task = tmp_path / "m", make()
    task.model.register_parameter("surplus", torch.nn.Parameter(torch.zeros(2)))
    with refused(RegardError, "model.safetensors", "surplus"):
        open_without_torch(put(folder, task), "cpu")


@pytest.mark.parametrize("device", ["cuda", "cpu:1", "x"])
def test_another_device_is_torchs(device: str, tmp_path: Path) -> None:
    assert open_without_torch(put(tmp_path / "m", translator()), device) is None


def test_where_there_may_be_a_gpu_torch_decides(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = put(tmp_path / "m", translator())
    monkeypatch.setattr("regard.tasks.model_folder.GPUS", (str(folder),))
    assert open_without_torch(folder, None) is None
    assert open_without_torch(folder, "cpu") is not None
    assert all(one.startswith("/dev/") for one in GPUS)


@pytest.mark.parametrize("make", [viewer, recurrent])
def test_what_has_no_engine_is_torchs(make: Any, tmp_path: Path) -> None:
    assert open_without_torch(put(tmp_path / "m", make()), "cpu") is None
    assert not by_engine(regard.load(tmp_path / "m", "cpu"))


def test_a_folder_that_is_none_is_torchs_to_refuse(tmp_path: Path) -> None:
    assert open_without_torch(tmp_path / "nowhere", "cpu") is None
    (tmp_path / "broken").mkdir()
    (tmp_path / "broken" / "recipe.toml").write_text("x = ")
    assert open_without_torch(tmp_path / "broken", "cpu") is None


@pytest.mark.parametrize("make", [translator, classifier, tagger, speaker])
def test_a_damaged_file_is_refused_as_by_torch(make: Any, tmp_path: Path) -> None:
    folder = put(tmp_path / "m", make())
    content = bytearray((folder / "model.safetensors").read_bytes())
    content[-3] ^= 1
    (folder / "model.safetensors").write_bytes(content)
    with refused(Damaged, "model.safetensors"):
        open_without_torch(folder, "cpu")


@pytest.mark.parametrize("make", [translator, asker, spanner, classifier, pairs, tagger, filler, speaker, encoder])
def test_in_python_the_model_computes_while_hooks_look_inside(make: Any, tmp_path: Path) -> None:
    task = regard.load(put(tmp_path / "m", make()), "cpu")
    assert by_engine(task)
    with capture(["*"]):
        assert not by_engine(task)
    assert by_engine(task)
    task.model.train()
    assert not by_engine(task)
    task.model.eval()
    assert by_engine(task)


def test_ablations_are_the_models(tmp_path: Path) -> None:
    task = regard.Translator.load(put(tmp_path / "m", translator()), "cpu")
    plain = load(task._explored.folders[0].path, "cpu")
    assert task.translate(TEXTS) == plain.translate(TEXTS)
    nbest = task.without(positions=True, heads=[("cross", 1, 1)]).nbest([SOURCE], 1, 1)[0][0]
    assert nbest.score != pytest.approx(plain.nbest([SOURCE], 1, 1)[0][0].score, rel=1e-4)


def test_a_changed_weight_is_packed_again(tmp_path: Path) -> None:
    task = regard.Translator.load(put(tmp_path / "m", translator()), "cpu")
    first = step_of(task)
    assert step_of(task) is first
    before = task.nbest([SOURCE], 1, 1)[0][0].score
    with torch.no_grad():
        task.model.encoder.layers[0].attention.query.weight.mul_(3)
    assert step_of(task) is not first
    after = task.nbest([SOURCE], 1, 1)[0][0].score
    with capture(["*"]):
        assert after == pytest.approx(task.nbest([SOURCE], 1, 1)[0][0].score, rel=1e-4)
    assert after != pytest.approx(before, rel=1e-4)


def test_threads_of_python_do_not_disturb_each_other(tmp_path: Path) -> None:
    task = open_without_torch(put(tmp_path / "m", translator()), "cpu")
    expected = [[one.score for one in found] for found in task.nbest(TEXTS * 5, 2, 2)]
    found: list[Any] = [None] * 4

    def work(place: int) -> None:
        found[place] = [[one.score for one in line] for line in task.nbest(TEXTS * 5, 2, 2)]

    threads = [threading.Thread(target=work, args=(place,)) for place in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [expected] * 4
