"""The page's searches equal those of the tasks."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from regard.explore.forward.outputs import beam_search, prepare_search
from regard.system.errors import RegardError, UsageError
from tests.refusals import refused
from tests.tasks.small_tasks import EVERY, GAPPED, SOURCE, recurrent, spanner, speaker, translator


@pytest.mark.parametrize("make", [translator, recurrent])
@pytest.mark.parametrize("beam", [1, 3])
def test_a_translation(make: Any, beam: int) -> None:
    task = make()
    start = prepare_search(task, SOURCE, 5)
    ways = beam_search(start, beam)
    wanted = task.nbest([SOURCE], beam, beam)[0]
    assert [way.tokens for way in ways] == [one.tokens for one in wanted]
    assert [start.text(way.tokens) for way in ways] == [one.text for one in wanted]
    assert [way.score for way in ways] == pytest.approx([one.score for one in wanted])


def test_missing_spans() -> None:
    task = spanner()
    start = prepare_search(task, GAPPED, 5)
    written = task.greedy_output(task.gap_source(GAPPED).source)
    assert list(beam_search(start, 1)[0].tokens) == written
    assert start.text([task.assets.tokenizer.sentinels[1], *task.assets.tokenizer.encode(" it was").ids]) == (
        "<extra_1> it was"
    )


def test_a_language_model_goes_on() -> None:
    task = speaker()
    start = prepare_search(task, "The animal", 7)
    (way,) = beam_search(start, 1)
    (wanted,) = task.generate("The animal", max_tokens=7, temperature=0)
    assert way.tokens == wanted.tokens
    assert start.text(way.tokens) == wanted.text
    assert len(way.tokens) <= 7
    assert start.first == task.assets.tokenizer.encode("The animal").ids[-1]


def test_who_writes_no_text() -> None:
    for name in ("classifier", "tagger", "filler", "viewer", "encoder"):
        with refused(UsageError, "model"):
            prepare_search(EVERY[name](), SOURCE, 5)


@pytest.mark.parametrize("make", [translator, recurrent, spanner, speaker])
def test_nothing_is_searched_for_a_text_that_is_too_long(make: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    task = make()
    monkeypatch.setattr("regard.models.decoding.stepper.stepper", None)
    for text in (SOURCE * 9, " "):
        with refused(RegardError, "text"):
            prepare_search(task, text, 5)


def test_a_trace_notes_five_candidates() -> None:
    task = translator()
    start = prepare_search(task, SOURCE, 5)
    trace = start.trace()
    beam_search(start, 2, trace)
    for step in trace[0]:
        assert np.shape(step.candidates) == (len(step.candidates), 5)
        assert not {1} & {id for row in step.candidates for id in row}
