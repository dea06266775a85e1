"""What heads do over the texts of a folder, and of texts in batches: against one pass for each text."""

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from regard.config import recipe_from
from regard.inspection.folders.models import ImageBatch, LruCache, Models
from regard.inspection.forward.head_functions import NAMES, OF_IMAGES
from regard.inspection.forward.head_statistics import head_statistics
from regard.inspection.forward.passes import TextExample, record_texts
from regard.inspection.forward.record import record
from regard.inspection.pictures.images import distances
from regard.inspection.questions import heads
from regard.inspection.questions.answers import answer
from regard.inspection.questions.heads import count_images, count_texts, demo_antecedents
from regard.inspection.requests import AblationRequest
from regard.runs.demo.translation import RECIPE
from regard.system.errors import RegardError, UsageError
from tests.inspection.payloads import Number, TaskOf, unpack
from tests.refusals import refused
from tests.tasks.small_tasks import EVERY, SOURCE, TARGET, TEXTS

READING = [name for name in EVERY if name != "viewer"]


@pytest.mark.one_of(2)
@pytest.mark.parametrize("name", READING)
def test_records_in_a_batch_are_those_alone_and_counted_by_kind(task: TaskOf, name: str) -> None:
    texts = [TEXTS.get(name, SOURCE), TEXTS.get(name, SOURCE)[:-7] + "."]
    if name == "pairs":
        texts[1] = "The animal [SEP] it was tired."
    given = [TextExample(text) for text in texts]
    for text, (one, cut) in zip(texts, record_texts(task(name), given), strict=True):
        wanted = record(task(name), text)
        assert (one.source, one.written) == (wanted.source, wanted.written)
        assert one.kinds == wanted.kinds
        assert not cut
        for kind in wanted.kinds:
            for some, other in zip(one.weights[kind], wanted.weights[kind], strict=True):
                np.testing.assert_allclose(some, other, atol=1e-5)
    (first, _) = count_texts(task(name), given)
    sizes = task(name).recipe.model.attention
    assert {kind: counts.sum_LHF.shape[:2] for kind, counts in first.counts.items()} == sizes


def test_ablations_are_applied(task: TaskOf) -> None:
    given = [TextExample(SOURCE, TARGET)]
    (before,) = count_texts(task("translator"), given)
    (changed,) = count_texts(task("translator"), given, AblationRequest(positions=False))
    assert not np.allclose(before.counts["encoder"].sum_LHF, changed.counts["encoder"].sum_LHF)
    (blind,) = count_texts(task("translator"), given, AblationRequest(mask=False))
    place = NAMES.index("next")
    assert not before.counts["decoder"].queries_F[place]
    assert blind.counts["decoder"].queries_F[place]


def test_a_long_text_is_cut(task: TaskOf) -> None:
    (one,) = count_texts(task("classifier"), [TextExample(" ".join([SOURCE] * 4))])
    assert one.cut


@pytest.mark.parametrize(("name", "target"), [("viewer", None), ("classifier", TARGET)])
def test_what_cannot_be_counted(task: TaskOf, name: str, target: str | None) -> None:
    with refused(UsageError):
        list(count_texts(task(name), [TextExample(SOURCE, target)]))


def images(task: Any, count: int) -> Any:
    shape = task.cut.shape
    return np.random.default_rng(3).integers(0, 256, (count, shape.height, shape.width, shape.channels))


def test_images_in_a_batch_are_counted_as_those_alone(task: TaskOf) -> None:
    viewer = task("viewer")
    given = images(viewer, 5)
    found = [one.counts["encoder"] for one in count_images(viewer, given, step=2)]
    assert len(found) == 5
    for number, counts in enumerate(found):
        (alone,) = count_images(viewer, given[number : number + 1])
        np.testing.assert_allclose(counts.sum_LHF, alone.counts["encoder"].sum_LHF, atol=1e-4)
    far = distances(viewer, list(given)).heads
    place = OF_IMAGES.names.index("distance")
    reach = sum(one.sum_LHF[..., place] for one in found) / sum(one.queries_F[place] for one in found)
    np.testing.assert_allclose(reach, far, rtol=1e-5)
    (changed,) = count_images(viewer, given[:1], AblationRequest(positions=False))
    assert not np.allclose(changed.counts["encoder"].sum_LHF, found[0].sum_LHF)


def test_the_page_asks_about_the_images_beside_it(
    models: Models, number: Number, task: TaskOf, monkeypatch: pytest.MonkeyPatch
) -> None:
    viewer = task("viewer")
    given = images(viewer, 12)
    shown = ImageBatch(given, (), len(given))
    monkeypatch.setattr(models.gallery, "batch", lambda task, begin, count: shown)
    monkeypatch.setattr(heads, "SECONDS", 0.0)
    done = []
    for _ in range(3):
        values, arrays = unpack(answer(models, "heads", {"model": number("viewer")}))
        done.append(values["done"])
    assert done == [heads.PIECE, 12, 12]
    assert (values["of"], values["origin"], list(values["kinds"])) == ("images", models.gallery.origin, ["encoder"])
    columns = values["kinds"]["encoder"]["columns"]
    assert [one["unit"] for one in columns if one["name"] in OF_IMAGES.measures] == ["pixels", "bits"]
    counted = [one.counts for one in count_images(viewer, given)]
    mean_LHF = head_statistics(counted, metrics=OF_IMAGES)["encoder"].mean_LHF
    shown_F = [OF_IMAGES.names.index(one["name"]) for one in columns]
    np.testing.assert_allclose(arrays["mean.encoder"], mean_LHF[..., shown_F], rtol=1e-4)


def test_an_answer_comes_in_pieces(models: Models, number: Number, monkeypatch: pytest.MonkeyPatch) -> None:
    given = [TextExample(SOURCE, TARGET)] * 3
    monkeypatch.setattr(heads, "folder_texts", lambda folder, task: ("validation", given))
    monkeypatch.setattr(heads, "SECONDS", 0.0)
    monkeypatch.setattr(heads, "PIECE", 1)
    monkeypatch.setattr(models, "cut", LruCache(32))
    asked = {"model": number("translator"), "changes": {"scaling": False}}
    done = []
    for _ in range(4):
        values, arrays = unpack(answer(models, "heads", asked))
        done.append(values["done"])
    assert done == [1, 2, 3, 3]
    assert values["total"] == 3
    cross = values["kinds"]["cross"]
    assert arrays["mean.cross"].shape == (cross["layers"], cross["heads"], len(cross["columns"]))
    assert (arrays["low.cross"] <= arrays["high.cross"]).all()


def test_a_folder_without_texts(plain: Any) -> None:
    with refused(RegardError, where="model"):
        plain("heads", "tagger")


def test_the_demonstration_knows_antecedents() -> None:
    recipe = recipe_from({**RECIPE, "model": {**RECIPE["model"], "encoder_layers": 3, "heads": 4}})  # an earlier one
    task: Any = SimpleNamespace(recipe=recipe)
    found = demo_antecedents(task, [SOURCE])[SOURCE]
    assert SOURCE[slice(*found.source)] == "it"
    assert [SOURCE[slice(*span)] for span in found.antecedents] == ["animal"]
    assert [SOURCE[slice(*span)] for span in found.rivals] == ["street"]
    assert found.target_text[slice(*found.target)] == "es"
