"""What can be wrong without the data is said before the data is read."""

import io
import json
import subprocess
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from regard.config import TASKS, Text
from regard.data.corpora.pairs import PairTable
from regard.nn import ops
from regard.runs import train as training
from regard.runs.convert.layouts import exports
from regard.runs.run import learning_line
from regard.system.errors import NoValidCheckpoint, RegardError, UsageError
from regard.tasks.classification.training import ClassificationJob
from regard.tasks.images.training import ImageJob
from regard.tasks.language.training import RunningTextJob
from regard.tasks.tagging.training import TaggingJob
from regard.tasks.translation import training as translation
from regard.tasks.translation.training import TranslationJob
from regard.training.checkpoints import resolved
from tests.refusals import refused
from tests.training.toy import Counting


@pytest.fixture
def ask(tmp_path, monkeypatch):
    """Train on two files that must not be read."""

    def read(*data):
        raise AssertionError("read")

    def train(output=tmp_path / "new", **wishes):
        return training.train(tmp_path / "a.en", tmp_path / "a.de", output, **wishes)

    for name in ("a.en", "a.de", "file"):
        (tmp_path / name).write_text("a\n")
    monkeypatch.setattr(translation, "scan_pairs", read)
    return train


WISHES = [
    *(({"minutes": number}, "minutes", str(number)) for number in (float("nan"), 0, -1.0)),
    ({"seed": -1}, "seed", "-1"),
    ({"weights": [1, 2]}, "data.weights", "2"),
    ({"weights": [-1]}, "data.weights", "negative"),
    ({"settings": ["data.weights=[1, 2]"]}, "data.weights", "2"),
    ({"device": "cpu:99"}, "device", "cpu:99"),
    ({"valid": "b"}, "valid", "source"),
    *(({"licence": text}, "licence", "") for text in ("", " ", "a\nb", "x" * 201, "\x1b[1m")),
]


@pytest.mark.parametrize(("wishes", "where", "held"), WISHES)
def test_wishes(ask, wishes, where, held) -> None:
    with refused(UsageError, where, held) as caught:
        ask(**wishes)
    assert caught.value.exit_code == 2


@pytest.mark.parametrize("name", [".", "file", "file/below/it"])
def test_outputs(ask, tmp_path, monkeypatch, name) -> None:
    with refused(RegardError, tmp_path / name):
        ask(tmp_path / name)
    with refused(NoValidCheckpoint, tmp_path / "new") as caught:
        ask(resume="must")
    assert caught.value.exit_code == 3
    monkeypatch.setattr("os.access", lambda path, mode: False)
    with refused(RegardError, "new"):
        ask()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.de", "a.en", "file"]


def test_pairs_may_be_one_file(tmp_path, monkeypatch) -> None:
    asked, table = [], tmp_path / "a.tsv"

    def noted(corpora, *more):
        asked.append(corpora)
        raise RegardError("enough")

    monkeypatch.setattr(translation, "scan_pairs", noted)
    table.touch()
    for pairs in (table, str(table), [table]):
        with refused(RegardError):
            training.train(pairs=pairs, output=tmp_path / "new")
    assert asked == [[PairTable(table)]] * 3


def test_where_nothing_is_wrong_the_data_is_read(ask) -> None:
    with pytest.raises(AssertionError, match="read"):
        ask(weights=[1], seed=3, resume="never", licence="CC BY-SA 4.0")


@pytest.mark.parametrize("task", [task for task in TASKS if task not in ("encoding", "translation")])
def test_only_translation_weighs_its_files(tmp_path, task) -> None:
    given: dict[str, Any] = {"train": [tmp_path / "a", tmp_path / "b"], "output": tmp_path / "new"}
    for where, wishes in (
        ("weights", {"task": task, "weights": [1, 2]}),
        ("data.weights", {"task": task, "settings": ["data.weights=[1, 2]"]}),
        ("data.weights", {"recipe": {"task": task, "data": {"weights": [1, 2]}}}),
    ):
        with refused(UsageError, where):
            training.train(**given, **wishes)


TAGGED = "A\tDET\ndog\tNOUN\n\nTwo\tNUM\nmen\tNOUN\n"
LABELLED = "text,label\na dog,animal\na wall,stone\na cat,animal\nno dog,animal\n"
SPANS = {"settings": ["text_to_text.spans=true"]}
NO_LAYOUT = "cannot be exported as it is: Hugging Face's layout needs model.family"
TOLD: dict[str, tuple[str, str, dict[str, Any], str]] = {
    "translation": ("a.en", "a dog\ntwo men\n", {"preset": "tiny"}, "can be exported to: CTranslate2; Pegasus needs "),
    "classification": ("a.csv", LABELLED, {}, NO_LAYOUT),
    "tagging": ("a.conll", TAGGED, {}, NO_LAYOUT),
    "language-model": ("a.txt", "a dog\n" * 9, {}, "cannot be exported as it is: GPT-2 needs model.positions = lea"),
    "masked-lm": ("a.txt", "a dog\n" * 9, {}, "cannot be exported as it is: BERT needs model.norm_place = post inst"),
    "text-to-text": ("a.txt", "a dog\n" * 9, SPANS, "can be exported to: Hugging Face (T5), CTranslate2"),
    "image-classification": ("a.csv", "0,1,2,3,x\n" * 3 + "3,2,1,0,y\n", {}, "can be exported to: Hugging Face (ViT)"),
}
"""By task a corpus, wishes, and how the line begins that says what the model can be exported to."""


@pytest.mark.parametrize("task", TOLD)
def test_what_a_model_can_be_exported_to_is_said_before_its_data_is_prepared(task, tmp_path, monkeypatch) -> None:
    name, content, wishes, begin = TOLD[task]
    recipes, told = [], Counting()

    def prepare(self, *more):
        recipes.append(self.recipe)
        raise RegardError("enough")

    for job in (TranslationJob, ClassificationJob, TaggingJob, ImageJob, RunningTextJob):
        monkeypatch.setattr(job, "prepare", prepare)
    for path in (tmp_path / name, tmp_path / "b.de"):
        path.write_text(content)
    both = {"source": tmp_path / name, "target": tmp_path / "b.de"}
    files = both if task == "translation" else {"train": tmp_path / name}
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
def small(tmp_path) -> dict[str, Any]:
    """The arguments of a run of two steps."""
    (tmp_path / "a.en").write_text("".join(f"a cat sees {n}\n" for n in range(60)))
    (tmp_path / "a.de").write_text("".join(f"eine Katze sieht {n}\n" for n in range(60)))
    files = {"source": tmp_path / "a.en", "target": tmp_path / "a.de", "output": tmp_path / "new"}
    return {**files, "recipe": SMALL, "steps": 2, "threads": 1}


STAGES = (
    *("checking the data", "Usable", "learning the vocabulary", "turning examples into ids"),
    *("training 2 steps", "all steps done: 2 steps"),
)


@pytest.mark.one_of(3)
@pytest.mark.parametrize("place", ["pipe", "terminal", "notebook"])
def test_what_happens_is_shown_where_nobody_says(small, monkeypatch, capsys, place) -> None:
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
    assert capsys.readouterr().out == ""
    assert ("\x1b" in text, "\r" in text) == (place == "terminal", place != "pipe")


LEARNED = [
    *((task, False, "single", "learning the vocabulary") for task in ("translation", "text-to-text", "masked-lm")),
    ("text-to-text", True, "single", "reading the data"),
    ("classification", False, "single", "learning the vocabulary and the labels"),
    ("classification", True, "multi", "learning the labels"),
    ("classification", False, "regression", "learning the vocabulary"),
    ("tagging", False, "single", "learning the vocabulary and the tags"),
    ("image-classification", False, "single", "learning the labels"),
]


@pytest.mark.parametrize(("task", "begun", "kind", "said"), LEARNED)
def test_only_what_is_learned_is_said_to_be(task, begun, kind, said) -> None:
    recipe = SimpleNamespace(info=TASKS[task], classification=SimpleNamespace(kind=kind), text=Text())
    assert learning_line(SimpleNamespace(recipe=recipe, pretrained="one" if begun else None)) == said


class Empty(Counting):
    """A reporter that is false in a condition."""

    def __len__(self) -> int:
        return 0


@pytest.mark.one_of(3)
@pytest.mark.parametrize(("told", "quiet"), [(None, True), (Empty(), False), (Empty(), True)])
def test_quiet_says_nothing_and_a_reporter_that_is_given_is_told_instead(small, monkeypatch, told, quiet) -> None:
    monkeypatch.setattr(sys, "stderr", heard := io.StringIO())
    training.train(**small, reporter=told, quiet=quiet)
    assert heard.getvalue() == ""
    assert told is None or "checking the data" in told.events


@pytest.mark.long(minutes=0.05)
def test_data_that_was_refused_may_be_repaired(tmp_path) -> None:
    """What was prepared of it blocks nothing; foreign files beside it are not deleted."""
    settings = "model.family=bert model.d_model=8 model.d_ff=8 model.heads=1 model.layers=1 text.vocabulary=300".split()
    given: dict[str, Any] = {"task": "classification", "train": tmp_path / "a.tsv", "output": tmp_path / "m"}
    given |= {"settings": settings, "steps": 1, "threads": 1, "quiet": True, "despite_check": True}
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
def test_a_first_start_validates_by_the_path_that_it_writes_down(small, path) -> None:
    if path not in ops.full_paths("cpu"):
        pytest.skip("this processor does not have this path")
    training.train(**small, quiet=True, settings=[f"training.product={path}"])
    assert resolved.read_fields(small["output"] / "training")["chosen.exact"] == path
    written = json.loads((small["output"] / "processors.json").read_text())
    assert path in {*written.pop(next(reversed(written))).values()}


@pytest.mark.parametrize("wishes", [{"processes": 3}, {"threads": 2}])
def test_processes_that_cannot_divide_the_shards_are_refused_before_it_prepares(small, monkeypatch, wishes) -> None:
    monkeypatch.setattr(TranslationJob, "prepare", lambda *given: pytest.fail("prepared"))
    settings = ["training.shards=4", "data.max_tokens=32"]
    with refused(UsageError, *wishes, "4"):
        training.train(**{**small, "threads": None, **wishes}, quiet=True, settings=settings)
    assert not Path(small["output"]).exists()


FIRST_STEP = """
import sys, torch
from regard.models.transformer import Transformer
from regard.runs.train import train
from regard.system.errors import Stopped

made, init = [], Transformer.__init__
def noted(self, *parts):
    init(self, *parts)
    made.append(self.output.weight.is_meta)
Transformer.__init__ = noted

def stop():
    ours = sum(name.split(".")[0] == "regard" for name in sys.modules)
    print(ours, made.count(False), made.count(True), int("torch._dynamo" in sys.modules))
    return True

small = ["text.vocabulary=300", "model.d_model=8", "model.d_ff=8", "model.heads=2", "data.validation=5"]
try:
    told = {"quiet": True, "despite_check": True, "should_stop": stop}
    train("a.en", "a.de", "model", steps=2, settings=small, processes=1, **told)
except Stopped:
    pass
"""


def test_a_translator_builds_two_models_until_its_first_step_and_loads_no_more_of_us_than_it_needs(tmp_path) -> None:
    """One to measure, one to train; and two outlines without weights, by which it is refused if it is too large."""
    for code in ("en", "de"):
        (tmp_path / f"a.{code}").write_text("".join(f"{code} red dog runs {n % 9}\n" for n in range(60)))
    done = subprocess.run([sys.executable, "-c", FIRST_STEP], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.stdout, done.stderr
    modules, built, outlines, compiler = map(int, done.stdout.splitlines()[0].split())
    assert (built, outlines) == (2, 2)
    assert not compiler  # whose modules take two seconds
    assert modules <= 148
