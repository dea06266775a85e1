"""When the engine computes a task, and when the model itself does."""

import os
import subprocess
import sys
import threading
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import regard
from regard.models.store import named_tensors
from regard.nn.hooks import capture
from regard.system import kernels
from regard.system.errors import Damaged, RegardError
from regard.tasks.assets import FittedValues
from regard.tasks.classification.ngrams import fit
from regard.tasks.engine import engine_of, step_of
from regard.tasks.model_folder import GPUS, load, open_without_torch
from regard.tasks.text.encoding import ImageVectors, TextVectors
from tests.refusals import refused
from tests.tasks import small_tasks
from tests.tasks.small_tasks import BOTH_TEXTS, GAPPED, SOURCE, SPANNED, classifier, put, translator

TEXTS = [SOURCE, "The street", "", "was too tired because"]


pytestmark = pytest.mark.usefixtures("compiled")


def by_engine(task: Any) -> bool:
    return engine_of(task) is not None


@pytest.mark.parametrize("name", ["translator", "asker"])
def test_a_folder_is_opened_without_its_model_and_says_the_same(name: str, tmp_path: Path) -> None:
    folder = put(tmp_path / "m", make(name))
    task, plain = open_without_torch(folder, "cpu"), load(folder, "cpu")
    assert type(task) is type(plain)
    assert task.device_name == "cpu"
    assert by_engine(task)
    assert not by_engine(plain)
    for found, expected in zip(task.nbest(TEXTS, 3, 3), plain.nbest(TEXTS, 3, 3), strict=True):
        assert [one.tokens for one in found] == [one.tokens for one in expected]
        assert [one.score for one in found] == pytest.approx([one.score for one in expected], rel=1e-4)
    assert torch.equal(task.model.output.weight, plain.model.output.weight)  # somebody looks inside


RUN = """import sys; from regard.cli import main
for line in sys.argv[1:]: print(main(line.split("\\n")), 'torch' in sys.modules)"""


def commands(*asked: Sequence[object], off: bool = False) -> list[str]:
    """What commands of one process write; after each a line with its exit code, and whether torch was loaded."""
    environment = os.environ | ({kernels.VARIABLE: "off"} if off else {})
    line = [sys.executable, "-c", RUN, *("\n".join(map(str, words)) for words in asked)]
    return subprocess.run(line, env=environment, capture_output=True, text=True, check=True).stdout.splitlines()


@pytest.mark.long(minutes=0.09)
def test_without_kernels_torch_says_the_same(tmp_path: Path) -> None:
    folder = put(tmp_path / "m", translator())
    asked, text = ("translate", folder, SOURCE, "--device", "cpu"), load(folder, "cpu").translate(SOURCE)
    assert commands(asked, off=True) == [text, "0 True"]


@pytest.mark.long(minutes=0.1)
def test_many_lines_are_divided_among_processes_without_torch(tmp_path: Path) -> None:
    folder, given = put(tmp_path / "m", translator()), tmp_path / "in"
    given.write_text("".join(f"{SOURCE[: n % 40]}\n" for n in range(3000)))
    asked = ("translate", folder, "--input", given, "--beam", 1, "--device", "cpu")
    each = [(*asked, "--output", tmp_path / f"{threads}", "--threads", threads) for threads in (1, 2)]
    assert commands(*each) == ["0 False"] * 2
    assert (tmp_path / "1").read_bytes() == (tmp_path / "2").read_bytes()


def make(name: str, **options: Any) -> Any:
    """One of the small tasks."""
    return getattr(small_tasks, name)(**options)


def both(folder: Path, task: Any) -> tuple[Any, Any]:
    """A task computed by its engine, and the same by its model."""
    put(folder, task)
    return open_without_torch(folder, "cpu"), load(folder, "cpu")


NAMES = "translator asker classifier pairs reader tagger stepper filler encoder speaker spanner".split()
KINDS = ("single", "multi", "regression")


@pytest.mark.one_of(9)
@pytest.mark.parametrize("name", NAMES)
def test_weights_that_are_not_finite_are_refused_by_name(name: str, tmp_path: Path) -> None:
    """Whatever reads them, and whichever they are: matrices, tables, norms."""
    weights = list(named_tensors(make(name).model))
    for number, (value, weight) in enumerate(zip([np.nan, np.inf], [weights[0], weights[-1]], strict=True)):
        changed = make(name)
        with torch.no_grad():
            named_tensors(changed.model)[weight].view(-1)[-1] = value
        folder = put(tmp_path / str(number), changed)
        for opened in (open_without_torch, load):
            with refused(RegardError, folder / "model.safetensors", repr(weight)):
                opened(folder, "cpu")


LARGE: list[tuple[str, dict[str, Any], Any]] = [
    *(("classifier", {"kind": kind}, lambda task: task.classify(SOURCE)) for kind in KINDS),
    *(("tagger", {"crf": crf}, lambda task: task.tag(SOURCE)) for crf in (False, True)),
    ("filler", {}, lambda task: task.fill(GAPPED)),
    ("encoder", {}, lambda task: TextVectors(task).tokens([SOURCE])),
    ("viewer", {}, lambda task: task.classify(np.zeros(24))),
    ("viewer", {}, lambda task: ImageVectors(task).images([np.zeros(24)])),
]


@pytest.mark.one_of(3)
@pytest.mark.parametrize(("name", "options", "ask"), LARGE)
def test_large_weights_are_finite_but_not_what_is_computed_of_them(
    name: str, options: dict[str, Any], ask: Any, tmp_path: Path
) -> None:
    """Their sum in single precision may be not, either."""
    task = make(name, **options)
    with torch.no_grad():
        for weight in named_tensors(task.model).values():
            weight.copy_(torch.where(weight < 0, -3e38, 3e38))
    fast, plain = both(tmp_path / "m", task)
    assert fast is None or by_engine(fast)
    for opened in filter(None, (fast, plain)):
        with refused(RegardError, None, "not finite"), np.errstate(all="ignore"):
            ask(opened)


LONG = " ".join([SOURCE] * 4)
"""A text that is read in several windows."""
READ = [*TEXTS, LONG]


def labels(task: Any) -> Any:
    return task.scores(READ), [one.labels for one in task.classify(READ, 0.4)]


def tags(task: Any) -> Any:
    return [(one.tags, one.probabilities) for one in task.tag(READ)]


def written(task: Any, **options: Any) -> Any:
    """Beyond the window, too."""
    found = (task.generate(prompt, max_tokens=60, **options) for prompt in ("", SOURCE, LONG))
    return [(one.tokens, one.log_probability) for group in found for one in group]


ASKED: list[tuple[str, dict[str, Any], Any]] = [
    *(("classifier", {"kind": kind}, labels) for kind in KINDS),
    *(("classifier", {"kind": kind, "pool": "mean", "positions": "alibi"}, labels) for kind in KINDS),
    *(("classifier", {"kind": kind, "word_features": 50, "norm": "rms"}, labels) for kind in KINDS),
    ("pairs", {}, lambda task: task.scores([BOTH_TEXTS, f"{LONG} [SEP] tired"])),
    ("reader", {}, labels),
    *((name, options, tags) for name, options in (("tagger", {}), ("tagger", {"crf": True}), ("stepper", {}))),
    ("filler", {}, lambda task: [(one.text, one.probability) for gap in task.fill(GAPPED, 3) for one in gap]),
    *(("speaker", {}, partial(written, **more)) for more in ({"temperature": 0.0}, {"top_k": 5})),
    ("speaker", {}, partial(written, repetition_penalty=1.5, n=3)),
    *((name, {}, lambda task: TextVectors(task).texts(READ)) for name in NAMES if name != "pairs"),
    *((name, {}, lambda task: TextVectors(task, 1).texts(READ)) for name in NAMES if name != "pairs"),
]


@pytest.mark.one_of(10)
@pytest.mark.parametrize(("name", "options", "ask"), ASKED)
def test_the_engine_says_what_the_model_says(name: str, options: dict[str, Any], ask: Any, tmp_path: Path) -> None:
    task, plain = both(tmp_path / "m", make(name, **options))
    expect_near(ask(task), ask(plain))
    assert by_engine(task)


def expect_near(found: Any, expected: Any) -> None:
    """The same, but for numbers, which may round otherwise."""
    if isinstance(found, float | np.ndarray):
        np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)
    elif isinstance(found, list | tuple):
        for one, other in zip(found, expected, strict=True):
            expect_near(one, other)
    else:
        assert found == expected


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
    expect_near(task.scores(TEXTS), plain.scores(TEXTS))
    assert np.abs(task.scores(TEXTS) - plain_scores).max() > 0.1


COMMANDS = """translator translate, classifier classify, reader classify, stepper tag --json, pairs classify,
tagger tag, filler fill, spanner ask, speaker generate --max-tokens 9, speaker generate --json --n 2 --max-tokens 9,
encoder encode, speaker encode --each token"""


def test_commands_answer_without_torch(tmp_path: Path) -> None:
    asked = []
    for name, word, *more in map(str.split, COMMANDS.split(",")):
        task = make(name)
        given = {"fill": GAPPED, "ask": SPANNED}.get(word, BOTH_TEXTS if task.info.texts == 2 else SOURCE)
        asked.append((word, put(tmp_path / name, task), given, *more, "--device", "cpu"))
    *answers, rest = "\n".join(["", *commands(*asked)]).split("\n0 False")
    assert (len(answers), rest) == (len(asked), "")
    assert all(answers)
    assert answers[0].strip() == load(tmp_path / "translator", "cpu").translate(SOURCE)


@pytest.mark.parametrize("name", ["classifier", "tagger", "speaker"])
def test_a_file_with_a_weight_too_many_is_refused(name: str, tmp_path: Path) -> None:
    folder, task = tmp_path / "m", make(name)
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


@pytest.mark.parametrize("name", ["viewer", "recurrent"])
def test_what_has_no_engine_is_torchs(name: str, tmp_path: Path) -> None:
    assert open_without_torch(put(tmp_path / "m", make(name)), "cpu") is None
    assert not by_engine(regard.load(tmp_path / "m", "cpu"))


def test_a_folder_that_is_none_is_torchs_to_refuse(tmp_path: Path) -> None:
    assert open_without_torch(tmp_path / "nowhere", "cpu") is None
    (tmp_path / "broken").mkdir()
    (tmp_path / "broken" / "recipe.toml").write_text("x = ")
    assert open_without_torch(tmp_path / "broken", "cpu") is None


@pytest.mark.parametrize("name", ["translator", "classifier", "tagger", "speaker"])
def test_a_damaged_file_is_refused_as_by_torch(name: str, tmp_path: Path) -> None:
    folder = put(tmp_path / "m", make(name))
    content = bytearray((folder / "model.safetensors").read_bytes())
    content[-3] ^= 1
    (folder / "model.safetensors").write_bytes(content)
    with refused(Damaged, "model.safetensors"):
        open_without_torch(folder, "cpu")


@pytest.mark.one_of(3)
@pytest.mark.parametrize("name", NAMES)
def test_in_python_the_model_computes_while_hooks_look_inside(name: str, tmp_path: Path) -> None:
    task = regard.load(put(tmp_path / "m", make(name)), "cpu")
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
