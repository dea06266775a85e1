"""Model outputs as plain values."""

from __future__ import annotations

import numpy as np
import pytest

from regard.explore.forward.outputs import OF_TEXTS, classes, of_image
from regard.tasks.classification.predictions import Prediction
from tests.tasks.small_tasks import GAPPED, LABELS, PIXELS, SOURCE, classifier, encoder, filler, speaker, tagger, viewer


def test_one_label() -> None:
    task = classifier()
    found = OF_TEXTS["classification"](task, SOURCE)
    verdict = task.classify(SOURCE)
    assert found["said"] == verdict.label
    assert not found["several"]
    assert dict(found["classes"]) == verdict.probabilities
    shares = [share for _, share in found["classes"]]
    assert shares == sorted(shares, reverse=True)
    assert sum(shares) == pytest.approx(1)
    assert found["classes"][0][0] == found["said"]


def test_several_labels_or_a_number() -> None:
    task = classifier("multi")
    found = OF_TEXTS["classification"](task, SOURCE)
    assert found["several"]
    assert found["said"] == [label for label, share in found["classes"] if share >= 0.5]
    assert sorted(label for label, _ in found["classes"]) == sorted(LABELS)
    task = classifier("regression")
    assert OF_TEXTS["classification"](task, SOURCE) == {
        "kind": "classes",
        "classes": [],
        "said": task.classify(SOURCE).value,
        "several": False,
    }


def test_what_is_out_of_scope_is_said() -> None:
    verdict = Prediction(("out of scope",), 0.4, None, {"a": 0.4, "b": 0.35})
    found = classes(classifier(), verdict)
    assert (found["said"], found["classes"]) == ("out of scope", [["a", 0.4], ["b", 0.35]])


def test_an_image() -> None:
    task = viewer()
    image = task.images([np.array(PIXELS)])[0]
    assert of_image(task, image)["said"] == task.classify(image).label


@pytest.mark.parametrize("crf", [False, True])
def test_a_tag_for_each_word(crf: bool) -> None:
    task = tagger(crf)
    found = OF_TEXTS["tagging"](task, SOURCE)["tags"]
    assert [one["text"] for one in found] == [SOURCE[one["start"] : one["end"]] for one in found]
    assert [one["tag"] for one in found] == list(task.tag(SOURCE).tags)
    assert [one["probability"] for one in found] == pytest.approx(task.tag(SOURCE).probabilities)
    assert " ".join(one["text"] for one in found).startswith("The animal didn ' t cross")


def test_missing_words() -> None:
    task = filler()
    found = OF_TEXTS["masked-lm"](task, GAPPED)
    gaps = task.fill(GAPPED)
    assert [[piece for piece, _ in gap] for gap in found["gaps"]] == [[one.piece for one in gap] for gap in gaps]
    assert found["text"] == gaps[0][0].text == gaps[1][0].text
    assert [len(gap) for gap in found["gaps"]] == [5, 5]
    assert OF_TEXTS["masked-lm"](task, SOURCE) == {"kind": "words", "gaps": [], "text": SOURCE}


def test_nothing_yet() -> None:
    assert OF_TEXTS["language-model"](speaker(), SOURCE) == {"kind": "continuation"}
    assert OF_TEXTS["encoding"](encoder(), SOURCE) == {"kind": "nothing"}
