import random
import re

import pytest

from regard.system.errors import RegardError
from regard.text.terms import NO_TERMS, PROTECTED, Phrases, TermEntry, TermList, count
from tests.refusals import refused

FILE = """# machines
dog\tHund|Hunde

hot dog\tHotdog
New York\t=
dog\tKöter
"""


def listed(tmp_path, text=FILE):
    (tmp_path / "t.tsv").write_text(text, encoding="utf-8")
    return TermList.read(tmp_path / "t.tsv")


def test_a_line_is_a_term_and_equal_sources_join_their_forms(tmp_path):
    entries = listed(tmp_path).entries
    assert entries == (
        TermEntry("dog", ("Hund", "Hunde", "Köter")),
        TermEntry("hot dog", ("Hotdog",)),
        TermEntry("New York", ("=",)),
    )


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("dog", "1 column;"),
        ("a\tb\tc", "3 columns"),
        ("\tHund", "empty"),
        ("dog\tHund|", "empty"),
        ("dog\t", "empty"),
        ("dog\tHund|" + "Hü" * 101, "202 characters"),
        ("dog\tHu\u2028nd", "U+2028"),
        ("do\x01g\tHund", "U+0001"),
    ],
)
def test_a_line_that_is_no_term_is_named(tmp_path, line, words):
    with refused(RegardError, "t.tsv:2", words):
        listed(tmp_path, f"cat\tKatze\n{line}\n")


def test_a_line_that_is_not_valid_utf_8_is_refused(tmp_path):
    (tmp_path / "t.tsv").write_bytes("dog\tHund\nmen\tMänner\n".encode("latin-1"))
    with refused(RegardError, "t.tsv:2", "not valid UTF-8"):
        TermList.read(tmp_path / "t.tsv")
    text = f"dog\t{'x' * 200}|=\ndog\tKöter\n"
    assert listed(tmp_path, text).entries == (TermEntry("dog", ("x" * 200, "=", "Köter")),)


def test_lines_leave_and_come_as_they_are_written(tmp_path):
    found = listed(tmp_path)
    assert found.content == FILE.encode()
    assert found.without(["hot  dog", "dog"]).lines == ("# machines", "", "New York\t=")
    other = TermList(("# mine", "dog\tDackel"))
    assert found.with_lines(other).lines == (
        "# machines",
        "",
        "hot dog\tHotdog",
        "New York\t=",
        "# mine",
        "dog\tDackel",
    )
    assert NO_TERMS.with_lines(other) == other
    with refused(RegardError, "t.tsv", "'Dog'", "as written"):
        found.without(["Dog"])


@pytest.mark.parametrize(
    ("text", "spaced", "expected"),
    [
        ("A dog, a Dog and a DOG.", True, ["dog", "Dog", "DOG"]),
        ("dogs bulldog dog's", True, ["dog"]),
        ("A hot dog in new york, in New York", True, ["hot dog", "New York"]),
        ("dog", True, ["dog"]),
        ("dog\u0301 dog_ dog1", True, []),
        ("私dogの", True, []),
        ("私dogの dogs", False, ["dog"]),
        ("İdog dog", True, ["dog"]),
    ],
)
def test_sources_are_whole_words_in_the_case_that_they_ask_for(text, spaced, expected):
    phrases = Phrases(["dog", "hot dog", "New York", "hot"], spaced)
    assert [text[one.begin : one.end] for one in phrases.find(text)] == expected


def test_capitals_win_where_both_are_listed_and_taken_places_are_left_out():
    phrases = Phrases(["us", "US"], True)
    assert [one.place for one in phrases.find("us US Us")] == [0, 1, 0]
    assert [one.begin for one in phrases.find("us US Us", taken=[(2, 5)])] == [0, 6]
    assert [one.begin for one in phrases.find("us US Us", taken=[(0, 1), (3, 5), (7, 9)])] == [0, 3, 6]
    within = Phrases(["a b", "b c"], True).find("a b c", taken=[(0, 4)])
    assert [(one.begin, one.end) for one in within] == [(2, 5)]
    assert list(Phrases([], True).find("us")) == []


def test_phrases_are_those_that_a_regular_expression_finds():
    draw = random.Random(5)
    for _ in range(200):
        phrases = ["".join(draw.choices("ab ", k=draw.randint(1, 4))).strip() or "a" for _ in range(4)]
        text = "".join(draw.choices("ab ,", k=30))
        longest = sorted(set(phrases), key=len, reverse=True)
        wanted = re.finditer(rf"(?<!\w)(?:{'|'.join(longest)})(?!\w)", text)
        assert [(one.begin, one.end) for one in Phrases(phrases, True).find(text)] == [one.span() for one in wanted]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("%(name)s has %d of %5.2f%%", ["%(name)s", "%d", "%5.2f", "%%"]),
        ("Hi {name}, {0} {{x}} ${HOME} {a.b!r:>5}", ["{name}", "{0}", "{{x}}", "${HOME}", "{a.b!r:>5}"]),
        ("See <b>this</b> & <a href='x'>that</a>.", ["<b>", "</b>", "<a href='x'>", "</a>"]),
        ("at https://a.org/b?c=1, or www.x.de/y; mail a.b@c.org.", ["https://a.org/b?c=1", "www.x.de/y", "a.b@c.org"]),
        ("In 1999, 3,000.50 of 10:30 at 50 % off, v2 B52", ["1999", "3,000.50", "10:30", "50", "v2", "B52"]),
        ("100%d 5 < 6 and 7 > 2, 50% de", ["100", "5", "6", "7", "2", "50%"]),
        ("On 2024-05-06T10:30, v2.0.1-rc3 (2.0.1).", ["2024-05-06T10:30", "v2.0.1-rc3", "2.0.1"]),
        ("100km by 5G in 3D, 20°C and -5, +3.5%, a-4", ["100km", "5G", "3D", "20°C", "-5", "+3.5%", "4"]),
        ("Call +49 30 123456, not 30 12; 5-year", ["+49 30 123456", "30", "12", "5"]),
        ("10\xa0000 and 1\u202f000\u202f000 or 7\u2009500", ["10\xa0000", "1\u202f000\u202f000", "7\u2009500"]),
        ("of [X7X] see [1], [12] or [a]", ["[X7X]", "[1]", "[12]"]),
        ("the 2nd of the 1990s, 21st, file_2, 第3回", []),
    ],
)
def test_what_is_protected(text, expected):
    assert [one for one in PROTECTED.findall(text) if one] == expected


def test_forms_are_counted_as_whole_words_without_sharing_a_character():
    assert count(["Haus"], "Haus Hausboot (Haus) Haus_") == 2
    assert count(["New York", "York"], "New York York New York") == 3
    assert count(["a a"], "a a a") == 1
    assert count(["%d"], "%d%d d%d") == 3
    assert count(["3"], "13 3.0 3") == 2
    assert count(["猫"], "黒猫が猫", spaced=False) == 2
    assert count(["猫"], "黒猫が猫") == 0
