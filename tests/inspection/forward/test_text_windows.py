"""Texts longer than a model's context: their windows, and answers about one of them, which is named."""

import itertools
import json
from dataclasses import asdict
from typing import Any

import pytest

from regard.inspection.folders.models import Models
from regard.inspection.forward.record import text_inputs
from regard.inspection.forward.text_windows import TextWindows, WindowedRequest, windows
from regard.inspection.questions.answers import export_file, stream_tokens
from regard.text.languages import cut
from tests.inspection.payloads import Ask, Number, TaskOf, check_same, held
from tests.tasks.small_tasks import EVERY, GAPPED, SOURCE, TARGET, TEXTS, filler, speaker, translator

READERS = [name for name in EVERY if name not in ("viewer", "pairs")]
WRITERS = ["translator", "recurrent", "speaker", "spanner", "asker"]


def long(name: str, times: int = 6) -> str:
    """A text that no model here reads at once."""
    return " ".join([TEXTS.get(name, SOURCE)] * times)


def check_tokens(task: Any, found: TextWindows) -> None:
    """They are numbered without a hole; the last may begin within the one before it."""
    every = [found.window(number) for number in range(1, len(found.texts) + 1)]
    assert every[0].first == 1
    assert every[-1].last == found.total
    around = 1 if task.name in ("translation", "text-to-text", "language-model") else 2
    nothing = () if task.name in ("translation", "text-to-text") else None  # what writes need not search
    for number, one in enumerate(every, 1):
        assert (one.number, one.count, one.total) == (number, len(every), found.total)
        assert one.last - one.first + 1 == len(text_inputs(task, one.text, nothing).source) - around
    for one, other in itertools.pairwise(every):
        assert other.first == one.last + 1 or (other.number == other.count and other.first <= one.last + 1)


@pytest.mark.parametrize("name", READERS)
def test_a_text_that_is_read_at_once_is_whole(name: str) -> None:
    task, text = EVERY[name](), TEXTS.get(name, SOURCE)
    found = windows(task, text)
    assert (found.texts, found.begin) == ((text,), 1)
    one = found.window()
    assert (one.first, one.last, one.total, one.count) == (1, found.total, found.total, 1)
    assert windows(task, "  ").texts == ("  ",)


@pytest.mark.parametrize("name", READERS)
def test_each_window_is_read_whole(name: str) -> None:
    task, text = EVERY[name](), long(name)
    found = windows(task, text)
    assert len(found.texts) > 2
    for part in found.texts:
        assert windows(task, part).texts == (part,)
    check_tokens(task, found)
    if name in ("translator", "recurrent"):
        return
    *first, last = found.texts  # no word is torn, and none is lost
    begun = "".join(first)
    assert text.startswith(begun)
    assert text.endswith(last)
    assert len(begun) + len(last) >= len(text)
    for part in found.texts:
        begin, end = text.index(part), text.index(part) + len(part)
        assert begin == 0 or text[begin].isspace() or text[begin - 1].isspace()
        assert end == len(text) or text[end].isspace()


def test_the_last_window_is_as_full_as_the_others() -> None:
    task = filler()
    found = windows(task, long("filler"))
    room = task.recipe.data.max_tokens - 2
    assert min(found.sizes) > room - 4
    assert found.sizes[-1] + sum(found.sizes[:-1]) > found.total  # it overlaps


@pytest.mark.parametrize("name", ["translator", "recurrent"])
def test_a_translator_reads_the_sentences_that_it_translates(name: str) -> None:
    task = EVERY[name]()
    text = f"{SOURCE} {SOURCE.removesuffix('.')} {'and that ' * 60}{SOURCE} It was late."
    found = windows(task, text)
    assert list(found.texts) == cut(text, task.vocabularies.source, task.recipe.data.max_tokens, "en")
    assert found.window().text == SOURCE
    assert found.begin == 1


def test_a_word_without_end_is_cut_and_a_gap_is_not() -> None:
    for name in READERS:
        task = EVERY[name]()
        found = windows(task, "tired" * 200)
        assert "".join(found.texts[:-1]) in "tired" * 200
        assert all(windows(task, part).texts == (part,) for part in found.texts)
    task = filler()
    found = windows(task, "[MASK]" * 90)
    assert len(found.texts) == 3
    for part in found.texts:
        assert part.replace("[MASK]", "") == ""
        assert len(task.fill(part, 1)) == part.count("[MASK]")


def test_where_one_begins() -> None:
    """Where something is missing, where a text goes on, else at its beginning."""
    plain = " ".join([SOURCE] * 6)
    assert windows(EVERY["classifier"](), plain).begin == 1
    task = filler()
    assert windows(task, plain).begin == 1
    found = windows(task, f"{plain} {GAPPED} {plain}")
    assert 1 < found.begin < len(found.texts)
    assert task.gaps.parse(found.window().text).gaps
    assert not any(task.gaps.parse(part).gaps for part in found.texts[: found.begin - 1])
    found = windows(speaker(), plain)
    assert found.begin == len(found.texts)
    assert plain.endswith(found.window().text)


def test_behind_the_window_of_a_model_that_goes_on_there_is_room() -> None:
    task = speaker()
    limit = task.recipe.data.max_tokens
    for part in windows(task, " ".join([SOURCE] * 6)).texts:
        assert len(text_inputs(task, part).source) + limit // 4 <= limit
    assert len(text_inputs(task, SOURCE + SOURCE + SOURCE).source) <= limit  # what fits is not cut for that
    assert len(windows(task, SOURCE + SOURCE + SOURCE).texts) == 1


def test_a_number_that_is_not_there_is_the_nearest() -> None:
    found = windows(filler(), long("filler"))
    assert found.window(10**6) == found.window(len(found.texts))
    assert found.window(0) == found.window(-7) == found.window(1)
    two = found.window(2)
    assert two.label == f"part 2 of {len(found.texts)}: tokens {two.first}–{two.last} of {two.total}"


def test_a_long_text_is_cut_without_reading_it_over_and_over() -> None:
    """What is read in all is a few times the text, however long it is."""
    task = filler()
    read = [0]
    reads = task.reads

    def counted(text: str) -> Any:
        read[0] += len(text)
        return reads(text)

    task.reads = counted
    for text in (f"{SOURCE} " * 300, "tired" * 3000):
        read[0] = 0
        windows(task, text)
        assert read[0] < 12 * len(text)


@pytest.mark.one_of(9)
@pytest.mark.parametrize("name", READERS)
def test_a_look_is_of_a_part_and_says_of_which(ask: Ask, task: TaskOf, name: str) -> None:
    text = long(name)
    found = windows(task(name), text)
    for number in (None, 1, 2, len(found.texts), 10**6):
        seen = ask("look", name, text=text, window=number)
        assert seen[0]["window"] == asdict(found.window(number))
        check_same(seen, ask("look", name, text=found.window(number).text))
    whole, _ = ask("look", name)
    assert (whole["window"], whole["target_window"]) == (None, None)


@pytest.mark.one_of(9, minutes=0.02)
@pytest.mark.parametrize("name", READERS)
def test_every_other_question_is_of_the_same_part(ask: Ask, task: TaskOf, name: str) -> None:
    text = long(name)
    part = windows(task(name), text).window(2).text
    seen, _ = ask("look", name, text=part)
    kind = next(iter(seen["kinds"]))
    said = task(name).name != "encoding"
    place = {} if task(name).name == "classification" else {"place": 3}
    places = {"places": [place["place"]]} if place else {}
    questions: dict[str, dict[str, Any]] = {
        "head": {"kind": kind, "layer": 1, "head": 1},
        "row": {"kind": kind, "places": [0]},
        "equation": {"kind": kind, "query": 0},
        **({"owes": place, "needs": places} if said else {}),
        **({"tree": {"beam": 2}} if name in WRITERS else {}),
    }
    for question, given in questions.items():
        check_same(ask(question, name, text=text, window=2, **given), ask(question, name, text=part, **given))


@pytest.mark.one_of(6, minutes=0.02)
@pytest.mark.parametrize("name", WRITERS)
def test_what_is_written_is_of_the_same_part(models: Models, number: Number, task: TaskOf, name: str) -> None:
    text = long(name)
    for window in (None, 1, 3):
        given = {"model": number(name), "text": text, "window": window, "most": 5}
        part = windows(task(name), text).window(window).text
        alone = {**given, "text": part, "window": None}
        assert list(stream_tokens(models, given)) == list(stream_tokens(models, alone))


def test_paths_of_words_are_of_the_same_part(ask: Ask, plain: Ask, task: TaskOf) -> None:
    text = long("classifier")
    first, part, *_ = windows(task("classifier"), text).texts
    scenes = [{"text": text, "window": 2}, {"text": text}], [{"text": part}, {"text": first}]
    check_same(*(plain("drift", "classifier", scenes=some, stack="encoder") for some in scenes))


@pytest.mark.parametrize("name", ["translator", "spanner"])
def test_what_is_forced_may_be_too_long_too(ask: Ask, name: str) -> None:
    target = f"{'<extra_0> ' * (name == 'spanner')}{f'{TARGET} ' * 9}"
    seen, _ = ask("look", name, target=target)
    told = seen["target_window"]
    assert (told["number"], told["first"]) == (1, 1)
    assert told["last"] < told["total"]
    assert len(seen["target"]) == told["last"] + 1
    again, _ = ask("look", name, target=told["text"])
    assert again["target"] == seen["target"]
    assert again["target_window"] is None


def test_a_file_says_which_part_it_is_of(models: Models, number: Number, task: TaskOf) -> None:
    text = long("translator")
    given = {"model": number("translator"), "text": text, "window": 2, "kind": "cross", "layer": 1, "head": 1}
    told = windows(task("translator"), text).window(2)
    sentence = f"Of the text this is {told.label}."
    svg = export_file(models, {**given, "form": "svg"})[0].decode()
    assert all(word in svg for word in sentence.split())
    numbers = json.loads(export_file(models, {**given, "form": "json"})[0])
    assert numbers["source_text"] == told.text
    assert numbers["window"] == asdict(told)
    assert "target_window" not in numbers
    short = json.loads(export_file(models, {**given, "text": SOURCE, "form": "json"})[0])
    assert "window" not in short
    values, _ = held(export_file(models, {**given, "form": "html"})[0].decode())
    assert (values["window"], values["source_text"]) == (asdict(told), told.text)


def test_in_a_sentence() -> None:
    task = translator()
    assert WindowedRequest.of(task, SOURCE).label == ""
    found = WindowedRequest.of(task, long("translator", 5), f"{TARGET} " * 9, 2)
    assert found.label == (
        "Of the text this is part 2 of 5: tokens 14–26 of 65. "
        f"Of what it is made to write this is {found.target.label if found.target else None}."
    )
    assert list(found.cut_values) == ["window", "target_window"]


def test_an_image_has_no_parts(ask: Ask) -> None:
    assert ask("look", "viewer", window=3)[0]["window"] is None
