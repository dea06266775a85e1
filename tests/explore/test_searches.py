"""Searches of a page are those of the tasks."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from regard.errors import RegardError, UsageError
from regard.explore.searches import begun, found
from small_tasks import EVERY, GAPPED, SOURCE, recurrent, spanner, speaker, translator


@pytest.mark.parametrize("make", [translator, recurrent])
@pytest.mark.parametrize("beam", [1, 3])
def test_a_translation(make: Any, beam: int) -> None:
    task = make()
    start = begun(task, SOURCE, 5)
    ways = found(start, beam)
    wanted = task.nbest([SOURCE], beam, beam)[0]
    assert [way.tokens for way in ways] == [one.tokens for one in wanted]
    assert [start.text(way.tokens) for way in ways] == [one.text for one in wanted]
    assert [way.score for way in ways] == pytest.approx([one.score for one in wanted])


def test_missing_spans() -> None:
    task = spanner()
    start = begun(task, GAPPED, 5)
    written = task.written(task.asked(GAPPED).source)
    assert list(found(start, 1)[0].tokens) == written
    assert start.text([task.assets.tokenizer.sentinels[1], *task.assets.tokenizer.encode(" it was").ids]) == (
        "<extra_1> it was"
    )


def test_a_language_model_goes_on() -> None:
    task = speaker()
    start = begun(task, "The animal", 7)
    (way,) = found(start, 1)
    (wanted,) = task.generate("The animal", max_tokens=7, temperature=0)
    assert way.tokens == wanted.tokens
    assert start.text(way.tokens) == wanted.text
    assert len(way.tokens) <= 7
    assert start.first == task.assets.tokenizer.encode("The animal").ids[-1]


def test_who_writes_no_text() -> None:
    for name in ("classifier", "tagger", "filler", "viewer", "encoder"):
        with pytest.raises(UsageError, match="writes no text"):
            begun(EVERY[name](), SOURCE, 5)


@pytest.mark.parametrize("make", [translator, recurrent, spanner, speaker])
def test_nothing_is_searched_for_a_text_that_is_too_long(make: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    task = make()
    monkeypatch.setattr(type(task.model), "stepper", None)
    for text in (SOURCE * 9, " "):
        with pytest.raises(RegardError, match=r"tokens, the model learned|is empty"):
            begun(task, text, 5)


def test_a_trace_notes_five_candidates() -> None:
    task = translator()
    start = begun(task, SOURCE, 5)
    trace = start.trace()
    found(start, 2, trace)
    for step in trace[0]:
        assert np.shape(step.candidates) == (len(step.candidates), 5)
        assert not {1} & {id for row in step.candidates for id in row}
