"""What can be wrong without the data is said before the data is read."""

import io
import json
import os
import pty
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from regard.config import TASKS
from regard.convert import exports
from regard.data.corpora.pairs import PairTable
from regard.nn import ops
from regard.runs import datasets
from regard.runs import train as training
from regard.runs.run import learning_line
from regard.system.errors import NoValidCheckpoint, RegardError, UsageError
from regard.tasks.classification.training import ClassificationJob
from regard.tasks.images.training import ImageJob
from regard.tasks.language.training import RunningTextJob
from regard.tasks.tagging.training import TaggingJob
from regard.tasks.translation.training import TranslationJob
from regard.training.checkpoints import resolved
from tests.refusals import refused
from tests.training.toy import Counting


@pytest.fixture
def ask(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., object]:
    """Train on two files that must not be read."""

    def read(*data: object) -> None:
        raise AssertionError("read")

    def train(output: Path = tmp_path / "new", **wishes: Any) -> object:
        return training.train(tmp_path / "a.en", tmp_path / "a.de", output, **wishes)

    for name in ("a.en", "a.de", "file"):
        (tmp_path / name).write_text("a\n")
    monkeypatch.setattr(datasets, "scan_pairs", read)
    return train


@pytest.mark.parametrize(
    ("wishes", "where", "held"),
    [
        ({"minutes": float("nan")}, "--minutes", "nan"),
        ({"minutes": 0}, "--minutes", "0"),
        ({"minutes": -1.0}, "--minutes", "-1.0"),
        ({"seed": -1}, "--seed", "-1"),
        ({"weights": [1, 2]}, "data.weights", "2"),
        ({"weights": [-1]}, "data.weights", "negative"),
        ({"settings": ["data.weights=[1, 2]"]}, "data.weights", "2"),
        ({"device": "cpu:99"}, "--device", "cpu:99"),
        ({"valid": "b"}, "--valid", "--source"),
        ({"start_from": "model"}, "--from", ""),
    ],
)
def test_wishes(ask: Any, wishes: dict[str, Any], where: str, held: str) -> None:
    with refused(UsageError, where, held) as caught:
        ask(**wishes)
    assert caught.value.exit_code == 2


@pytest.mark.parametrize("name", [".", "file", "file/below/it"])
def test_outputs(ask: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    with refused(RegardError, tmp_path / name):
        ask(tmp_path / name)
    with refused(NoValidCheckpoint, tmp_path / "new") as caught:
        ask(resume="must")
    assert caught.value.exit_code == 3
    monkeypatch.setattr("os.access", lambda path, mode: False)
    with refused(RegardError, "new"):
        ask()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.de", "a.en", "file"]


def test_pairs_may_be_one_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Any] = []

    def noted(corpora: Any, *more: object) -> None:
        asked.append(corpora)
        raise RegardError("enough")

    monkeypatch.setattr(datasets, "scan_pairs", noted)
    (tmp_path / "a.tsv").touch()
    for pairs in (tmp_path / "a.tsv", str(tmp_path / "a.tsv"), [tmp_path / "a.tsv"]):
        with refused(RegardError):
            training.train(pairs=pairs, output=tmp_path / "new")
    assert asked == [[PairTable(tmp_path / "a.tsv")]] * 3


def test_where_nothing_is_wrong_the_data_is_read(ask: Any) -> None:
    with pytest.raises(AssertionError, match="read"):
        ask(weights=[1], seed=3, resume="never")


@pytest.mark.parametrize("task", [task for task in TASKS if task not in ("encoding", "translation")])
def test_only_translation_weighs_its_files(tmp_path: Path, task: str) -> None:
    recipe = {"task": task, "data": {"weights": [1, 2]}}
    given: dict[str, Any] = {"train": [tmp_path / "a", tmp_path / "b"], "output": tmp_path / "new"}
    by_setting = {"task": task, "settings": ["data.weights=[1, 2]"]}
    given_by = {"task": task, "weights": [1, 2]}
    for where, wishes in (("--weight", given_by), ("data.weights", by_setting), ("data.weights", {"recipe": recipe})):
        with refused(UsageError, where):
            training.train(**given, **wishes)


TAGGED = "A\tDET\ndog\tNOUN\n\nTwo\tNUM\nmen\tNOUN\n"
LABELLED = "text,label\na dog,animal\na wall,stone\na cat,animal\nno dog,animal\n"
SPANS = ["text_to_text.spans=true"]
TOLD: dict[str, tuple[str, str, dict[str, Any], str]] = {
    "translation": ("a.en", "a dog\ntwo men\n", {"preset": "tiny"}, "can be exported to: Hugging Face (Pegasus), CTr"),
    "classification": ("a.csv", LABELLED, {}, "cannot be exported as it is: Hugging Face's layout needs model.family"),
    "tagging": ("a.conll", TAGGED, {}, "cannot be exported as it is: Hugging Face's layout needs model.family"),
    "language-model": ("a.txt", "a dog\n" * 9, {}, "cannot be exported as it is: GPT-2 needs model.positions = lea"),
    "masked-lm": ("a.txt", "a dog\n" * 9, {}, "cannot be exported as it is: BERT needs model.norm_place = post inst"),
    "text-to-text": ("a.txt", "a dog\n" * 9, {"settings": SPANS}, "can be exported to: Hugging Face (T5), CTranslate2"),
    "image-classification": ("a.csv", "0,1,2,3,x\n" * 3 + "3,2,1,0,y\n", {}, "can be exported to: Hugging Face (ViT)"),
}
"""By task a corpus, wishes, and how the line begins that says what the model can be exported to."""


@pytest.mark.parametrize("task", TOLD)
def test_what_a_model_can_be_exported_to_is_said_before_its_data_is_prepared(
    task: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    name, content, wishes, begin = TOLD[task]
    recipes, told = [], Counting()

    def prepare(self: Any, *more: object) -> None:
        recipes.append(self.recipe)
        raise RegardError("enough")

    for job in (TranslationJob, ClassificationJob, TaggingJob, ImageJob, RunningTextJob):
        monkeypatch.setattr(job, "prepare", prepare)
    (tmp_path / name).write_text(content)
    (tmp_path / "b.de").write_text(content)
    files = {"train": tmp_path / name}
    if task == "translation":
        files = {"source": tmp_path / name, "target": tmp_path / "b.de"}
    with refused(RegardError):
        training.train(**files, output=tmp_path / "new", task=task, reporter=told, despite_check=True, **wishes)
    assert told.events[-1] == exports(recipes[0]).line
    assert told.events[-1].startswith(f"this model {begin}")


SMALL: dict[str, Any] = {
    "text": {"vocabulary": 300},
    "data": {"max_tokens": 40},
    "model": {"family": "transformer", "encoder_layers": 1, "decoder_layers": 1, "d_model": 8, "d_ff": 8, "heads": 2},
    "training": {"tokens": 128, "select": "loss"},
    "decoding": {"beam": 1, "max_extra": 3},
}


@pytest.fixture
def small(tmp_path: Path) -> dict[str, Any]:
    """The arguments of a run of two steps."""
    (tmp_path / "a.en").write_text("".join(f"a cat sees {n}\n" for n in range(60)))
    (tmp_path / "a.de").write_text("".join(f"eine Katze sieht {n}\n" for n in range(60)))
    files = {"source": tmp_path / "a.en", "target": tmp_path / "a.de", "output": tmp_path / "new"}
    return {**files, "recipe": SMALL, "steps": 2, "threads": 1}


STAGES = (
    *("checking the data", "Usable", "learning the vocabulary", "turning examples into ids"),
    *("training 2 steps", "all steps done: 2 steps"),
)


@pytest.mark.parametrize("place", ["pipe", "terminal", "notebook"])
def test_what_happens_is_shown_where_nobody_says(small: Any, monkeypatch: pytest.MonkeyPatch, place: str) -> None:
    monkeypatch.setattr(sys, "stderr", heard := io.StringIO())
    monkeypatch.setattr(heard, "isatty", lambda: place == "terminal")
    if place == "notebook":
        shell: Any = ModuleType("IPython")
        shell.get_ipython = type("ZMQInteractiveShell", (), {})
        monkeypatch.setitem(sys.modules, "IPython", shell)
    training.train(**small)
    text = heard.getvalue()
    assert [line for line in STAGES if line not in text] == []
    assert "labels" not in text
    assert ("\x1b" in text, "\r" in text) == (place == "terminal", place != "pipe")


@pytest.mark.parametrize(
    ("task", "begun", "kind", "said"),
    [
        ("translation", False, "single", "learning the vocabulary"),
        ("text-to-text", False, "single", "learning the vocabulary"),
        ("text-to-text", True, "single", "reading the data"),
        ("masked-lm", False, "single", "learning the vocabulary"),
        ("classification", False, "single", "learning the vocabulary and the labels"),
        ("classification", True, "multi", "learning the labels"),
        ("classification", False, "regression", "learning the vocabulary"),
        ("tagging", False, "single", "learning the vocabulary and the tags"),
        ("image-classification", False, "single", "learning the labels"),
    ],
)
def test_only_what_is_learned_is_said_to_be(task: str, begun: bool, kind: str, said: str) -> None:
    section = SimpleNamespace(kind=kind)
    recipe = SimpleNamespace(info=TASKS[task], classification=section)
    assert learning_line(SimpleNamespace(recipe=recipe, pretrained="one" if begun else None)) == said  # type: ignore[arg-type]


class Empty(Counting):
    """A reporter that is false in a condition."""

    def __len__(self) -> int:
        return 0


@pytest.mark.parametrize(("told", "quiet"), [(None, True), (Empty(), False), (Empty(), True)])
def test_quiet_says_nothing_and_a_reporter_that_is_given_is_told_instead(
    small: Any, monkeypatch: pytest.MonkeyPatch, told: Counting | None, quiet: bool
) -> None:
    monkeypatch.setattr(sys, "stderr", heard := io.StringIO())
    training.train(**small, reporter=told, quiet=quiet)
    assert heard.getvalue() == ""
    assert told is None or "checking the data" in told.events


@pytest.mark.long(minutes=0.3)
def test_a_script_is_not_silent(small: Any) -> None:
    """In processes of their own: with stderr piped lines, on a terminal a bar; nothing on stdout."""
    given = {name: str(value) if isinstance(value, Path) else value for name, value in small.items()}
    script = [sys.executable, "-c", f"import regard; regard.train(**{given!r})"]
    piped = subprocess.run(script, capture_output=True, text=True, check=True)
    assert [line for line in STAGES if line not in piped.stderr] == []
    assert "\x1b" not in piped.stderr
    assert piped.stdout == ""
    ours, theirs = pty.openpty()
    again = {**given, "output": f"{given['output']}-again"}
    script[-1] = f"import regard; regard.train(**{again!r})"
    with open(os.devnull, "wb") as nowhere:
        child = subprocess.Popen(script, stdout=nowhere, stderr=theirs, env={**os.environ, "TERM": "xterm"})
    os.close(theirs)
    shown = b""
    try:
        while piece := os.read(ours, 1 << 16):
            shown += piece
    except OSError:  # the terminal's other end is closed
        pass
    assert child.wait() == 0
    assert b"\x1b[" in shown
    assert [line for line in STAGES if line.encode() not in shown] == []


def test_data_that_was_refused_may_be_repaired(tmp_path: Path) -> None:
    """What was prepared of it blocks nothing; foreign files beside it are not deleted."""
    sizes = ["model.d_model=8", "model.d_ff=8", "model.heads=1", "model.layers=1", "text.vocabulary=300"]
    given: dict[str, Any] = {"task": "classification", "train": tmp_path / "a.tsv", "output": tmp_path / "m"}
    given |= {"settings": [*sizes, "model.family=bert"], "steps": 1, "threads": 1, "quiet": True, "despite_check": True}
    (tmp_path / "a.tsv").write_text("the cat\tanimal\nthe wall\tstone\n")  # one of them is split off
    with refused(RegardError, None):
        training.train(**given)
    (tmp_path / "a.tsv").write_text("".join(f"the cat {n}\tanimal\nthe wall {n}\tstone\n" for n in range(20)))
    foreign = tmp_path / "m" / "training" / "data" / "notes.txt"
    foreign.write_text("years")
    with refused(RegardError, foreign.parent, "notes.txt"):
        training.train(**given)
    assert foreign.read_text() == "years"
    foreign.unlink()
    training.train(**given)
    with refused(UsageError, None):
        training.train(**{**given, "output": "a\udcff"})


@pytest.mark.parametrize("path", ["exact", "onednn"])
def test_a_first_start_validates_by_the_path_that_it_writes_down(small: Any, path: str) -> None:
    if path not in ops.full_paths("cpu"):
        pytest.skip("this processor does not have this path")
    training.train(**small, quiet=True, settings=[f"training.product={path}"])
    assert resolved.read_fields(small["output"] / "training")["chosen.exact"] == path
    written = json.loads((small["output"] / "processors.json").read_text())
    assert path in {*written.pop(next(reversed(written))).values()}


@pytest.mark.parametrize(
    ("shards", "wishes", "where"), [(4, {"processes": 3}, "processes"), (4, {"threads": 2}, "threads")]
)
def test_processes_that_cannot_divide_the_shards_are_refused_before_data_is_prepared(
    small: Any, monkeypatch: pytest.MonkeyPatch, shards: int, wishes: dict[str, int], where: str
) -> None:
    def prepare(*given: object) -> None:
        raise AssertionError("prepared")

    monkeypatch.setattr(TranslationJob, "prepare", prepare)
    settings = [f"training.shards={shards}", "data.max_tokens=32"]
    with refused(UsageError, where, str(shards)):
        training.train(**{**small, "threads": None, **wishes}, quiet=True, settings=settings)
    assert not Path(small["output"]).exists()
