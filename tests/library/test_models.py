"""``regard.load`` gives the public class of each task, which does what the task does, and says what it is."""

import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import regard
from regard.config import TASKS
from regard.library import models
from regard.library.base import card_scores, opened
from regard.models.ablation import Ablations, Head
from regard.system.errors import RegardError, UsageError
from regard.tasks import model_class, model_folder
from regard.tasks.tagging.tagger import Tagging
from tests.library.conftest import IMAGE, ModelOf
from tests.refusals import refused
from tests.tasks.small_tasks import EVERY, GAPPED, PLACELESS, SOURCE, SPANNED, TARGET, TEXTS, put, translator

CLASSES = {
    "translator": regard.Translator,
    "recurrent": regard.Translator,
    "classifier": regard.Classifier,
    "pairs": regard.PairClassifier,
    "reader": regard.Classifier,
    "tagger": regard.Tagger,
    "filler": regard.MaskedLm,
    "speaker": regard.LanguageModel,
    "spanner": regard.TextToText,
    "asker": regard.TextToText,
    "viewer": regard.ImageClassifier,
    "encoder": regard.TextEncoder,
}


def probabilities(model: Any, given: Any) -> list[float]:
    return list(model.classify(given).probabilities.values())


CALLS = {
    "translator": lambda m: [one.score for one in m.nbest([SOURCE], 2, 2)[0]],
    "recurrent": lambda m: [one.score for one in m.nbest([SOURCE])[0]],
    "classifier": lambda m: probabilities(m, SOURCE),
    "pairs": lambda m: probabilities(m, TEXTS["pairs"]),
    "reader": lambda m: probabilities(m, SOURCE),
    "tagger": lambda m: list(m.tag(SOURCE).probabilities),
    "filler": lambda m: [one.probability for one in m.fill(GAPPED)[0]],
    "speaker": lambda m: list(m.score(SOURCE).log_probabilities),
    "spanner": lambda m: [one.probability for one in m.nbest([SPANNED], 2)[0]],
    "asker": lambda m: [one.score for one in m.nbest([SOURCE], 2)[0]],
    "viewer": lambda m: probabilities(m, IMAGE),
    "encoder": lambda m: m.encode(SOURCE).tolist(),
}
"""Numbers of a call of each."""
KINDS = {"recurrent": "cross", "reader": "pool", "speaker": "decoder", "translator": "cross"}


def test_every_class_has_a_task() -> None:
    assert CLASSES.keys() == EVERY.keys()
    public = [kind for kind in vars(models).values() if isinstance(kind, type) and regard.Model in kind.__bases__]
    assert set(public) == {*CLASSES.values()}
    for kind in public:
        assert kind.__bases__[0] in map(model_class, TASKS)
        assert getattr(regard, kind.__name__) is kind


@pytest.mark.one_of(9)
@pytest.mark.parametrize("name", EVERY)
def test_class_says_what_the_task_says(name: str, folder: Callable[[str], Path]) -> None:
    found = regard.load(folder(name), device="cpu")
    plain = model_folder.load(folder(name), device="cpu")
    assert type(found) is CLASSES[name]
    assert isinstance(found, type(plain))
    assert isinstance(CLASSES[name].load(folder(name), "cpu"), regard.Model)
    assert CALLS[name](found) == pytest.approx(CALLS[name](plain), rel=1e-4)  # an engine may compute it


@pytest.mark.gpu
@pytest.mark.parametrize("name", EVERY)
def test_a_gpu_computes_the_same(name: str, folder: Callable[[str], Path], model: ModelOf) -> None:
    assert CALLS[name](regard.load(folder(name), device="cuda")) == pytest.approx(CALLS[name](model(name)), rel=1e-3)


def test_a_task_without_a_public_class_opens_as_its_own(folder: Callable[[str], Path]) -> None:
    class Namer(Tagging):
        """A task of which the house knows nothing."""

    plain = model_folder.load(folder("tagger"), device="cpu")
    found, again = (opened(Namer(plain.recipe, plain.assets, plain.model), folder("tagger")) for _ in range(2))
    assert isinstance(found, Namer)
    assert type(found) is type(again)
    assert CALLS["tagger"](found.without(positions=True)) != CALLS["tagger"](found)


def test_another_class_is_refused(folder: Callable[[str], Path]) -> None:
    with refused(UsageError, "tagger", "Tagger", "Translator"):
        regard.Translator.load(folder("tagger"))


@pytest.mark.one_of(9)
@pytest.mark.parametrize("name", EVERY)
def test_methods_run_with_ablations(name: str, model: ModelOf) -> None:
    whole = model(name)
    kind = KINDS.get(name, "encoder")
    changed = whole.without(heads=[(kind, 1, 1)])
    assert type(changed) is type(whole)
    with Ablations(off=(Head(kind, 1, 1),)).apply(whole.recipe.model):
        expected = CALLS[name](whole)
    assert CALLS[name](changed) == expected
    assert expected != CALLS[name](whole)


@pytest.mark.parametrize("part", ["positions", "scaling", "mask"])
def test_parts_are_left_out_once(part: str, model: ModelOf) -> None:
    """``score`` calls ``surprise``, and a stream goes on between two of its values: no change is applied twice."""
    whole = model("speaker")
    changed = whole.without(**{part: True})
    with Ablations(**{part: False}).apply(whole.recipe.model):
        expected = CALLS["speaker"](whole)
        text = "".join(whole.stream("The", temperature=0, max_tokens=5))
    assert CALLS["speaker"](changed) == expected
    said = "|".join(changed.stream("The", temperature=0, max_tokens=5))
    assert said.replace("|", "") == text


def test_a_stream_leaves_others_alone(model: ModelOf) -> None:
    whole = model("speaker")
    before = CALLS["speaker"](whole)
    parts = whole.without(positions=True).stream("The", temperature=0, max_tokens=5)
    next(parts)
    assert CALLS["speaker"](whole) == before


def test_changes_add_up(model: ModelOf) -> None:
    whole = model("translator")
    step = whole.without(heads=[("cross", 1, 2)]).without(heads=[("encoder", 1, 1)], positions=True)
    both = whole.without(heads=[("encoder", 1, 1), ("cross", 1, 2)], positions=True)
    assert CALLS["translator"](step) == CALLS["translator"](both)
    assert step.summary.changes == both.summary.changes != ""
    assert whole.summary.changes == ""


def test_what_is_not_there_cannot_be_left_out(model: ModelOf) -> None:
    with refused(UsageError, "heads", "9", "cross", "3 heads"):
        model("translator").without(heads=[("cross", 1, 9)])
    with refused(UsageError, "heads", "cross", "encoder"):
        model("classifier").without(heads=[("cross", 1, 1)])
    with refused(UsageError, "heads"):
        model("classifier").without(heads=[("encoder", 0, 1)])


@pytest.mark.parametrize("name", EVERY)
def test_absent_parts_are_refused(name: str, model: ModelOf) -> None:
    """A part can be switched off if, and only if, that changes what passes in the model."""
    found = model(name)
    there = {
        "positions": name not in PLACELESS,
        "scaling": name not in (*PLACELESS, "spanner"),
        "mask": name in ("translator", "spanner", "asker", "speaker"),
    }
    for part, has in there.items():
        if has:
            assert found.without(**{part: True}).summary.changes
        else:
            with refused(UsageError, part, *found.recipe.model.attention, *(one for one in there if there[one])):
                found.without(**{part: True})


def test_a_model_survives_its_folder(folder: Callable[[str], Path], tmp_path: Path) -> None:
    place = Path(shutil.copytree(folder("classifier"), tmp_path / "model"))
    found = regard.load(place, device="cpu")
    shutil.rmtree(place)
    assert repr(found)
    assert found.without(positions=True).summary.changes


def test_a_model_made_by_hand_says_so(model: ModelOf) -> None:
    found = model("classifier")
    made = regard.Classifier(found.recipe, found.assets, found.model)
    assert "Classifier" in repr(made)
    with refused(UsageError, "Classifier"):
        _ = made.summary


def test_a_pair_may_be_two_texts(model: Callable[[str], Any]) -> None:
    pairs, line = model("pairs"), TEXTS["pairs"]
    first, second = line.split(" [SEP] ")
    assert np.array_equal(pairs.attention((first, second)).weights, pairs.attention(line).weights)
    assert str(pairs.attribute((first, second))) == str(pairs.attribute(line))
    assert len(pairs.heads([(first, second), line])) == len(pairs.heads([line]))
    with pytest.raises(UsageError, match="expected 1, not a tuple of 2 texts"):
        model("translator").attention((first, second))


RUN = Path(__file__).parents[1] / "fixtures" / "runs" / "translator" / "model"
CARD = """# A translator

## Scores on the validation data

* BLEU 23.10 (beam 5; `nrefs:1|case:mixed`)
* chrF <40.20> (beam 5; `nrefs:1`)

## Training

12 steps.
"""


@pytest.mark.parametrize("name", EVERY)
def test_one_line_of_every_model(name: str, model: ModelOf) -> None:
    found = model(name)
    count = sum(weight.numel() for weight in found.model.parameters())
    assert repr(found).startswith(f"<{type(found).__name__} '{name}'")
    assert f"{count:,} parameters" in repr(found)
    assert "\n" not in repr(found)
    assert f"{count:,} parameters" in found._repr_html_()


def test_languages_labels_and_changes(model: ModelOf) -> None:
    assert "en → de" in repr(model("translator"))
    assert "bad, fair, good" in repr(model("classifier"))
    assert "1·2" in repr(model("translator").without(heads=[("cross", 1, 2)]))


def test_scores_are_those_of_the_card(tmp_path: Path) -> None:
    folder = put(tmp_path / "model", translator())
    assert card_scores(folder) == ()
    (folder / "card.md").write_text(CARD, encoding="utf-8")
    assert card_scores(folder) == ("BLEU 23.10 (beam 5; `nrefs:1|case:mixed`)", "chrF <40.20> (beam 5; `nrefs:1`)")
    found = regard.load(folder, device="cpu")
    assert "BLEU 23.10; chrF <40.20>" in repr(found)
    assert "chrF &lt;40.20&gt;" in found._repr_html_()


def test_scores_of_a_trained_model() -> None:
    assert card_scores(RUN) == ("At step 5: loss 5.593 nats a token.",)


MISTAKES: list[tuple[str, Callable[[Any], object]]] = [
    ("folder", lambda _: regard.load("folder")),
    ("text", lambda m: m.translate([None])),
    ("texts", lambda m: m.evaluate("file", "file")),
    ("targets", lambda m: m.heads([SOURCE], TARGET)),
    ("heads", lambda m: m.without(heads=("cross", 1, 1))),
    ("layer", lambda m: m.attention(SOURCE, TARGET).plot(layer="x")),
    ("model", lambda _: regard.explore("model")),
    ("source", lambda _: regard.train()),
    ("minutes", lambda _: regard.train(minuts=5)),
]


@pytest.mark.parametrize(("where", "call"), MISTAKES)
def test_common_mistakes_are_named(where: str, call: Callable[[Any], object], model: ModelOf) -> None:
    with pytest.raises(RegardError, match=where) as caught:
        call(model("translator"))
    assert "--" not in str(caught.value)


INTERRUPTED = """
import os, signal, sys
import regard
from regard.system.errors import Stopped
from regard.training.log import Reporter

class Impatient(Reporter):
    def on_step(self, metrics):
        if metrics.step == 7:
            os.kill(0, signal.SIGINT)  # as a terminal does: to every process of the run

if __name__ == "__main__":
    small = ["model.d_model=8", "model.d_ff=8", "model.heads=2", "text.vocabulary=300", "data.validation=5"]
    told = {"steps": 30, "settings": small, "processes": 2, "despite_check": True, "reporter": Impatient()}
    try:
        regard.train("a.en", "a.de", "model", **told)
    except Stopped:
        print("stopped")
    print(signal.getsignal(signal.SIGINT) is signal.default_int_handler)
"""


def test_an_interrupt_stops_a_training_after_its_step(tmp_path: Path) -> None:
    for code in ("en", "de"):
        (tmp_path / f"a.{code}").write_text("".join(f"{code} red dog runs {n % 9}\n" for n in range(60)))
    done = subprocess.run(
        [sys.executable, "-c", INTERRUPTED],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
        start_new_session=True,
    )
    assert (done.returncode, done.stdout.split()) == (0, ["stopped", "True"]), done.stderr
    assert "Traceback" not in done.stderr
    latest = (tmp_path / "model/training/checkpoints/latest").read_text().strip()
    assert int(latest.rpartition("-")[2]) in (7, 8)
