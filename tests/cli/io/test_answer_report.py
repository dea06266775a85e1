"""What is told of texts beside their answers: each at once to a person, a line or two of a whole file."""

from dataclasses import dataclass
from typing import Any

from regard.cli.io.answer_report import FEW, LONGEST, TUNE, AnswerReport
from regard.text.confidence import UnseenWord


@dataclass
class Written:
    confidence: float
    unsure: bool | None
    text: str = "a"


SURE, UNSURE, UNKNOWN = Written(0.95, False), Written(0.312, True), Written(0.1, None)
EMPTY = Written(0.95, False, "")


def words(*some: str) -> list[UnseenWord]:
    return [UnseenWord(word, 0, len(word)) for word in some]


def report(each: bool) -> tuple[AnswerReport, list[str]]:
    told: list[str] = []
    return AnswerReport(0.623, each, told.append), told


def told_of(each: bool, texts: list[str], *noted: Any) -> list[str]:
    """What is told of one group."""
    taken, told = report(each)
    taken.add(1, texts, *noted)
    taken.close_group(len(texts))
    taken.tell_all()
    return told


def test_a_person_is_told_of_each_text_once_its_group_is_answered() -> None:
    taken, told = report(each=True)
    taken.add(7, ["a"] * 4, [words("zebra", "emu", "zebra"), words(), words("X"), ()], [SURE, UNSURE, UNKNOWN, EMPTY])
    assert told == []
    taken.close_group(4)
    sure = "probability 0.312 a token, where 0.623 or more is usual"
    assert told == [
        "line 7: “zebra”, “emu” are in no training text",
        f"line 8: the model is unsure ({sure})",
        "line 9: “X” is in no training text",
        f"line 10: the model wrote nothing ({TUNE})",
    ]
    taken.close_group(1)
    taken.tell_all()
    assert len(told) == 4


def test_of_a_file_the_number_and_the_first_are_told() -> None:
    taken, told = report(each=False)
    for first in range(1, 1001, 100):
        taken.add(first, ["a"] * 100, [words("zebra") if first < 200 else words()] * 100, [UNSURE, *[SURE] * 98, EMPTY])
        taken.close_group(100)
    assert told == []
    taken.tell_all()
    named = "; ".join(f"line {number} “zebra”" for number in range(1, 1 + FEW))
    share = "probability below 0.623 a token"
    assert told == [
        f"200 of 1,000 lines have words or signs that no training text has: {named}; …",
        f"the model is unsure of 10 of 1,000 lines ({share}): lines 1, 101, 201, 301, 401, …",
        f"the model wrote nothing for 10 of 1,000 lines ({TUNE}): lines 100, 200, 300, 400, 500, …",
    ]


def test_one_line_is_one_line() -> None:
    told = told_of(False, ["a"], [words("zebra")], [UNSURE])
    assert told[0] == "1 of 1 line has words or signs that no training text has: line 1 “zebra”"
    assert told[1].startswith("the model is unsure of 1 of 1 line (")
    assert told[1].endswith(": line 1")


def test_nothing_to_tell_is_not_told() -> None:
    for each in (True, False):
        assert told_of(each, ["a", " "], None, [SURE, EMPTY]) == []


def test_many_and_long_words_are_shortened() -> None:
    told = told_of(True, ["a"], [words("a" * 5000, *"bcdefgh")], [SURE])
    assert told == [f"line 1: “{'a' * LONGEST}…”, “b”, “c”, “d”, “e”, … are in no training text"]


def test_notes_of_another_process_are_as_ones_own() -> None:
    (taken, told), (other, nothing) = report(each=True), report(each=True)
    other.add(4, ["a"], [words("zebra")], [UNSURE])
    packed = other.pack(memoryview(b"a\n\nb\n"))
    assert taken.unpack(packed) == b"a\n\nb\n"
    other.close_group(1)
    taken.close_group(1)
    assert (len(told), nothing) == (2, [])
