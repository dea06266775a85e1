"""Segments through a real translator: the shipped one of the demonstration's grammar."""

from __future__ import annotations

import re
import time
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, cast
from unittest.mock import patch

import pytest

import regard
from regard.data.corpora.corpus import TextPair
from regard.documents.memories.memory import TranslationMemory
from regard.documents.segment import Segment, SegmentBuilder, render
from regard.documents.tags import placeholders
from regard.documents.translate import Memory, SegmentAnswer, SegmentTranslator
from regard.engine import transformer
from regard.inspection import SHIPPED
from regard.tasks.text.output_options import OutputOptions
from regard.tasks.text.terms import Terminology
from regard.tasks.text.writer import Hypothesis
from regard.tasks.translation.translator import Translation
from regard.text.placeholders import plain
from regard.text.terms import Phrases, TermList


@pytest.fixture(scope="module")
def task() -> Translation:
    found = regard.load(SHIPPED[0])
    assert isinstance(found, Translation)
    return found.with_settings(['decoding.alignment_heads=["2 predicts"]'])


def segment(marked: str) -> Segment:
    builder = SegmentBuilder(0, blanks=True)
    for piece in re.findall(r"<\w+/>|<\w+>|</\w+>|`[^`]*`|[^<`]+", marked):
        if piece.startswith("`"):
            builder.keep(piece, piece[1:-1])
        elif piece.startswith("</"):
            builder.close(piece)
        elif piece.startswith("<"):
            (builder.empty if piece.endswith("/>") else builder.open)(piece)
        else:
            builder.add(piece)
    return builder.segment(0, "line 7")


def translate(
    task: Translation, *marked: str, memory: Memory | None = None, terms: Terminology | None = None
) -> list[str]:
    segments = [segment(one) for one in marked]
    answers = SegmentTranslator(task, OutputOptions(beam=1, terms=terms), memory=memory)(segments)
    return [written(*pair) for pair in zip(segments, answers, strict=True)]


def written(one: Segment, answer: SegmentAnswer) -> str:
    return render(one, answer.output) if answer.output else "as it is"


def test_tags_go_to_their_words(task: Translation) -> None:
    found = translate(
        task,
        "The <b>brown <i>horse</i></b> sees the cat.",
        "<p>The dog sleeps.</p>",
        "The dog<fn/> sees the cat.",
    )
    assert found == [
        "Das <b>braune <i>Pferd</i></b> sieht die Katze.",
        "<p>Der Hund schläft.</p>",
        "Der Hund<fn/> sieht die Katze.",
    ]


def test_sentences_are_joined_as_they_were(task: Translation) -> None:
    one, two = "The dog sleeps.", "The cat sleeps."
    assert translate(task, f" {one}  {two}\n\n{one} ") == [
        " Der Hund schläft.  Die Katze schläft.\n\nDer Hund schläft. "
    ]
    assert translate(task, f"{one}\tThe cat <b>sleeps</b>.") == ["Der Hund schläft.\tDie Katze <b>schläft</b>."]


def test_a_segment_is_the_same_in_any_company(task: Translation) -> None:
    some = ["The dog sees <b>the cat</b>.", "The horse sleeps.", "The <i>white</i> animal sees the dog."]
    assert translate(task, *some) == [translate(task, one)[0] for one in some]


def test_what_has_no_letters_stays(task: Translation) -> None:
    assert translate(task, "12 – 34", "  ", "", "`foo bar`", "https://example.org/a") == ["as it is"] * 5


def test_what_is_kept_comes_out_once(task: Translation) -> None:
    found = translate(task, "The dog sees `f(x, y)`.", "The <b>dog</b> costs 47 euros and %(name)s sleeps.")
    assert found[0].count("`f(x, y)`") == 1
    assert found[0].count("f(x") == 1
    for literal in ("47", "%(name)s"):
        assert found[1].count(literal) == 1


@pytest.mark.parametrize("output", ["x", " ".join("x" * 20_000)])
@pytest.mark.parametrize("one", ["%s a ", "{} a "])
def test_a_sentence_with_very_many_placeholders_takes_bounded_time(task: Translation, one: str, output: str) -> None:
    text = "".join(one.replace("{}", str(number)) for number in range(10_000 if output != "x" else 2_000))
    best = replace(task.write(["The dog sleeps."], OutputOptions(beam=1))[0][0], text=output)
    began = time.process_time()
    with patch.object(type(task), "write", lambda *given, **more: [[best]]):
        assert translate(task, text) == [f"{output} "]
    assert time.process_time() - began < 5


@pytest.mark.parametrize(
    ("source", "marked", "wanted"),
    [
        ("B52", "The dog sees the B52.", "Pferd"),
        ("12", "The 12 cats sleep.", "Pferd"),
        ("Boeing 747", "The dog sees the <b>Boeing 747</b>.", "Pferd"),
        ("www.example.org", "The dog sees www.example.org now.", "Pferd"),
        ("12 cats", "The 12  cats sleep.", "Pferd"),
        ("12", "The dog sees 12.5 cats.", "12.5"),
        ("name", "The dog sees %(name)s.", "%(name)s"),
        ("s", "The dog sees %s.", "%s"),
        ("B52", "The dog sees <b>`B52`</b>.", "`B52`"),
    ],
)
def test_terms_win_over_what_is_kept_but_for_parts_of_it(
    task: Translation, source: str, marked: str, wanted: str
) -> None:
    [found] = translate(task, marked, terms=Terminology(TermList((f"{source}\tPferd",))))
    assert wanted in found
    if wanted.endswith("Pferd"):
        assert source not in found


def test_a_list_of_terms_is_indexed_once(task: Translation) -> None:
    terms = Terminology(TermList(("dog\tPferd",)))
    with patch("regard.text.terms.Phrases", wraps=Phrases) as made:
        for _ in range(2):
            assert translate(task, "The dog sleeps.", "The B52 sleeps.", terms=terms)[0] == "Der Pferd schläft."
    assert [given.args[0] for given in made.call_args_list].count(["dog"]) == 2  # with and without space between words


class OneText:
    """Knows one text."""

    def __init__(self, **known: str) -> None:
        self.known = known

    def exact(self, text: str) -> str | None:
        return self.known.get(text)


def test_a_memory_is_taken_for_segments_and_sentences(task: Translation) -> None:
    memory = OneText(**{"The dog sleeps.": "HUND!", "The dog sleeps. The cat sleeps.": "Beide <schlafen>."})
    some = ["The <b>dog</b> sleeps. The cat sleeps.", "The cat sleeps. The dog sleeps."]
    found = translate(task, *some, memory=memory)
    assert found[1] == "Die Katze schläft. HUND!"
    assert re.sub(r"</?b>", "", found[0]) == "Beide <schlafen>."
    assert re.findall(r"</?b>", found[0]) == ["<b>", "</b>"]


def answers(task: Translation, some: Sequence[Segment]) -> list[SegmentAnswer]:
    return SegmentTranslator(task, OutputOptions(beam=1, guard="warn"))(some)


def test_warnings_are_told_at_their_segment(task: Translation) -> None:
    long = segment("The dog sees the cat and " * 200)
    some = answers(task, [segment("The dog sleeps."), long])
    assert not some[0].notes
    assert any("cut into" in note for note in some[1].notes)


def test_tags_of_a_text_that_is_cut_are_whole(task: Translation) -> None:
    long = segment("The <b>dog</b> sees the cat and " * 200)
    [found] = answers(task, [replace(long, text=long.text)])
    assert found.output is not None
    assert render(long, found.output).count("<b>") == 200


def test_close_matches_are_drafts_of_few_sentences(task: Translation) -> None:
    texts = ["The old dog sees the brown cat.", "The cat sleeps."]
    wanted = translate(task, *texts)
    memory = TranslationMemory([TextPair("The old dog sees the brown horse.", "Der alte Hund sieht das braune Pferd.")])
    seen: list[Any] = []
    write = type(task).write

    def noted(self: Any, *given: Any, **more: Any) -> Any:
        seen.append(more.get("drafts"))
        return write(self, *given, **more)

    with patch.object(type(task), "write", noted):
        assert translate(task, *texts, memory=memory) == wanted  # a small model
        with patch.object(transformer, "LARGE", 0):
            assert translate(task, *texts, memory=memory) == wanted
            assert translate(task, *texts, *texts, texts[0], memory=memory) == [*wanted, *wanted, wanted[0]]
    assert seen == [None, ["Der alte Hund sieht das braune Pferd.", ""], None]


class Carrying:
    """Writes what it is told, as a model that has learned to carry placeholders, and remembers what it read."""

    def __init__(self, task: Translation, **said: str) -> None:
        self.task, self.said, self.read = task, said, list[str]()
        self.recipe = task.recipe.model_copy(update={"text": task.recipe.text.model_copy(update={"tags": 0.1})})

    def __getattr__(self, name: str) -> object:
        return getattr(self.task, name)

    def write(self, texts: Sequence[str], options: OutputOptions, drafts: None) -> list[list[Hypothesis]]:
        self.read += texts
        found = self.task.write([plain(one) for one in texts], options)
        return [
            [replace(one[0], text=self.said.get(text, one[0].text))] for text, one in zip(texts, found, strict=True)
        ]


@pytest.mark.parametrize(
    ("marked", "read", "said", "wanted"),
    [
        (
            "The <b>old <i>dog</i></b> sleeps<fn/>. The cat sleeps.",
            "The old⦿ dog⦿⦾ sleeps⦹.",
            "Es schläft⦹ der⦿ alte⦾⦿ Hund⦿.",
            "Es schläft<fn/> <b>der <i>alte</i> Hund</b>. Die Katze schläft.",
        ),
        ("The <b>dog </b>sleeps.", "The dog⦿ sleeps.", "Der⦿ Hund⦿ schläft.", "<b>Der Hund</b> schläft."),
        ("The d<b>og</b> sleeps.", "The dog⦿ sleeps.", "Der Hund⦿ schläft.", "Der <b>Hund</b> schläft."),
        # broken: others, none; the attention places them
        ("The <b>dog</b> sleeps.", "The dog⦿ sleeps.", "Der⦿ Hund⦾ schläft.", "Der <b>Hund</b> schläft."),
        ("The <b>dog</b> sleeps.", "The dog⦿ sleeps.", "Der Hund schläft.", "Der <b>Hund</b> schläft."),
        # more tags than signs: they are not given
        (f"The {'<b>' * 5}dog{'</b>' * 5} sleeps.", "The dog sleeps.", "", f"Der {'<b>' * 5}Hund{'</b>' * 5} schläft."),
    ],
)
def test_a_model_that_has_learned_tags_places_them(
    task: Translation, marked: str, read: str, said: str, wanted: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(placeholders, "WRITTEN", 1.0)
    model = Carrying(task, **({read: said} if said else {}))
    assert translate(cast(Translation, model), marked) == [wanted]
    assert model.read[0] == read


def test_numbers_are_kept_however_many_outputs_are_asked_for(task: Translation) -> None:
    [draft] = SegmentTranslator(task, OutputOptions(6)).drafts([segment("7, the 8 man 9 sleeps")])
    assert all(number in draft.text for number in "789")
    assert len(draft.sentences[0].found) == 6
