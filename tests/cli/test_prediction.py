"""``regard classify``, ``tag`` and ``fill``: for each line labels, CoNLL, guesses, or a JSON object."""

import json
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from regard.cli.prediction import Sentence, join_sentences
from regard.config import TASKS
from regard.config import Classification as Section
from regard.data.corpora.tagged import open_tagged
from regard.system.errors import RegardError
from regard.tasks.assets import FittedValues
from regard.tasks.language.masked import Candidate
from regard.tasks.tagging.tagger import TaggedSpan, TaggedText
from regard.text.confidence import UnseenWord
from regard.text.tags import TaggedWords, places_of
from tests.cli.fakes import Unaware, answering


class Letters(Unaware):
    """A classifier of texts by their first letter; it sees no empty text."""

    info = TASKS["classification"]

    def parse_line(self, line: str, number: int) -> str | None:
        return line if line.strip() else None

    def __init__(self, labels: tuple[str, ...] = ("a", "b\tc"), **fields: Any) -> None:
        self.recipe = SimpleNamespace(classification=Section.model_validate(fields))
        self.assets = SimpleNamespace(labels=labels, fitted=FittedValues())

    def scores(self, texts: list[str]) -> np.ndarray:
        assert all(text.strip() for text in texts)
        rows = [[4.0 * (text[0] == label[0]) for label in self.assets.labels] for text in texts]
        return np.array(rows).reshape(len(texts), len(self.assets.labels))


class Images(Letters):
    """One of images of two pixels; a header stands in line 1."""

    info = TASKS["image-classification"]

    def parse_lines(self, lines: list[str], first: int) -> list[str]:
        (line,) = lines
        if not line.strip() or (first == 1 and "x" in line):
            return []
        if line.count(",") != 1:
            raise RegardError("has no two values", f"line {first}")
        return [line]


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (b"", ""),
        (b"an\nbe\n", "a\t0.9820\nb c\t0.9820\n"),
        (b"an", "a\t0.9820\n"),
        (b"\n  \nan\n\n", "\n\na\t0.9820\n\n"),
        (b"\xef\xbb\xbfan\r\n", "a\t0.9820\n"),
        (b"zoo\n", "a\t0.5000\n"),
        (b"b" * 1_000_000 + b"\nan\n", "b c\t0.9820\na\t0.9820\n"),
    ],
    ids=lambda given: str(given[:20]),
)
def test_lines_out_are_lines_in(classify, given: bytes, expected: str) -> None:
    done = classify(stdin=given)
    assert (done.code, done.out) == (0, expected)


def test_json_of_each_kind(classify, loaded) -> None:
    done = classify("--json", stdin=b"bad\n\n")
    first, second = map(json.loads, done.out.splitlines())
    assert first == {"label": "b\tc", "probability": pytest.approx(0.982014)}
    assert second == {"label": None, "probability": None}
    loaded(Letters(kind="multi"))
    first, second = map(json.loads, classify("--json", stdin=b"bad\n\n").out.splitlines())
    assert first == {"labels": ["b\tc", "a"], "probability": 0.5}
    assert second == {"labels": [], "probability": None}
    loaded(Letters(("a",), kind="regression"))
    first, second = map(json.loads, classify("--all", stdin=b"an\n\n").out.splitlines())
    assert (first, second) == ({"value": 4.0}, {"value": None})


def test_words_that_training_never_saw_are_in_the_json(classify, loaded) -> None:
    classifier = Letters()
    classifier.unseen_words = lambda text: [UnseenWord("zoo", 2, 5)]
    loaded(classifier)
    for option in ("--json", "--all"):
        (line,) = classify(option, stdin=b"a zoo\n").out.splitlines()
        assert json.loads(line)["unseen"] == [["zoo", 2, 5]]


def test_all_probabilities_the_most_probable_first(classify, loaded) -> None:
    loaded(Letters(("a", "b", "c")))
    (line,) = classify("--all", stdin=b"cat\n").out.splitlines()
    found = json.loads(line)["probabilities"]
    assert list(found) == ["c", "a", "b"]
    assert sum(found.values()) == pytest.approx(1, abs=1e-5)


def test_numbers_are_printed_alone(classify, loaded) -> None:
    loaded(Letters(("a",), kind="regression"))
    assert classify(stdin=b"an\n\nbe\n").out == "4\n\n0\n"
    classify("--threshold", "0.5", stdin=b"an\n").refuses("predicts numbers")


def test_a_threshold_puts_texts_out_of_scope(classify, loaded) -> None:
    assert classify("--threshold", "1", stdin=b"an\n").out == "out of scope\t0.9820\n"
    assert classify("--threshold", "0", stdin=b"an\n").out == "a\t0.9820\n"


@pytest.mark.parametrize("threshold", ["-0.1", "1.01", "nan"])
def test_a_threshold_is_a_probability(classify, threshold: str) -> None:
    classify(f"--threshold={threshold}").refuses("is no probability")


def test_images_may_have_a_header(classify, loaded) -> None:
    loaded(Images(("1", "2")))
    done = classify(stdin=b"x,y\n1,1\n\n2,0\n")
    assert done.out == "\n1\t0.9820\n\n2\t0.9820\n"
    assert done.err == "regard: line 1 names columns; it is taken for a header, not for an image\n"


def test_what_stands_before_a_line_that_cannot_be_read_is_answered(classify, loaded) -> None:
    loaded(Images(("1", "2")))
    done = classify(stdin=b"1,1\n2,0\n1,2,3\n1,1\n")
    assert (done.code, done.out) == (1, "1\t0.9820\n2\t0.9820\n")
    assert done.err == "regard: line 3: has no two values\n"


class Capitals(Unaware):
    """Finds words that begin with a capital."""

    info = TASKS["tagging"]

    def __init__(self, scheme: str = "bio") -> None:
        self.assets = SimpleNamespace(scheme=scheme)

    def tag(self, texts: list[str]) -> list[TaggedText]:
        return self.tag_all([TaggedWords(text, tuple(places_of(text))) for text in texts])

    def tag_words(self, texts: Sequence[Sequence[str]]) -> list[TaggedText]:
        return self.tag_all([TaggedWords.from_words(words, ()) for words in texts])

    def tag_all(self, texts: Sequence[TaggedWords]) -> list[TaggedText]:
        found = []
        for one in texts:
            tags = tuple("B-X" if word[0].isupper() else "O" for word in one.words)
            places = [place for place, tag in zip(one.places, tags, strict=True) if tag != "O"]
            spans = tuple(TaggedSpan(begin, end, "X", one.text[begin:end], 1 / 3) for begin, end in places)
            found.append(TaggedText(one.text, one.places, tags, (), spans))
        return found


classify, tag = answering("classify", Letters), answering("tag", Capitals)


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (b"", ""),
        (b"Ann, go\n", "Ann\tB-X\n,\tO\ngo\tO\n\n"),
        (b"\na\n\n", "\na\tO\n\n\n"),
        (b"\xef\xbb\xbfAnn\r\nb", "Ann\tB-X\n\nb\tO\n\n"),
        (b"a\tb\x0cc\n", "a\tO\nb\tO\nc\tO\n\n"),
    ],
)
def test_each_line_becomes_its_words_and_an_empty_line(tag, given: bytes, expected: str) -> None:
    done = tag(stdin=given).succeeds()
    assert done.out == expected


def test_words_are_cut_at_blanks_only(tag) -> None:
    assert tag("--words", stdin=b"Ann's  a,b\tC\n\n").out == "Ann's\tB-X\na,b\tO\nC\tB-X\n\n\n"


def test_json_has_spans_with_their_characters(tag) -> None:
    done = tag("--json", stdin="é Ann\n\n".encode())
    values = [json.loads(line) for line in done.out.splitlines()]
    span = {"start": 2, "end": 5, "label": "X", "text": "Ann", "probability": 0.333333}
    assert values == [{"text": "é Ann", "spans": [span]}, {"text": "", "spans": []}]
    words = json.loads(tag("--json", "--words", stdin=b"a,b C\n").out)
    assert [span["start"] for span in words["spans"]] == [4]


def test_json_of_plain_tags_has_words(tag, loaded) -> None:
    loaded(Capitals("none"))
    value = json.loads(tag("--json", stdin=b"a B\n").out)
    assert value == {"text": "a B", "words": ["a", "B"], "offsets": [[0, 1], [2, 3]], "tags": ["O", "B-X"]}


CONLL = """-DOCSTART-\t-X-

# sent_id = 1
# text = Ann #x
Ann\tNNP
#x\tTAG
\tO

a b
# c


Ann Q
"""


def test_conll_gets_one_column_more(tag) -> None:
    done = tag("--conll", stdin=CONLL.encode())
    assert done.out == (
        "-DOCSTART-\t-X-\n\n# sent_id = 1\n# text = Ann #x\nAnn\tNNP\tB-X\n#x\tTAG\tO\n\tO\t_\n\n"
        "a b O\n# c O\n\n\nAnn Q B-X\n\n"
    )
    alone = tag("--conll", stdin=b"# a comment\nAnn\n#x\n")
    assert alone.out == "# a comment\nAnn\tB-X\n#x\tO\n\n"
    value, *_ = map(json.loads, tag("--conll", "--json", stdin=b"b 1\nAnn 2\n").out.splitlines())
    assert value["text"] == "b Ann"
    assert tag("--conll", stdin=b"").out == ""


def test_a_comment_is_no_word_though_it_has_as_many_words_as_there_are_columns(tag) -> None:
    given = b"# newpar\nAnna\tx\nwent\ty\n# So it\n#x\ty\n\n# Anna went\n#Anna\tx\n\n# All the rest\n"
    done = tag("--conll", stdin=given)
    assert done.out == (
        "# newpar\nAnna\tx\tB-X\nwent\ty\tO\n# So it\n#x\ty\tO\n\n# Anna went\n#Anna\tx\tO\n\n# All the rest\n\n"
    )


def test_a_file_is_cut_into_words_as_where_it_is_learned_from(tmp_path: Path) -> None:
    for number, text in enumerate(("# newpar\nAnna\tx\n#y\tz\n", "# b c\nAnna x\n#y z\n", "-DOCSTART- -X-\n# \nA b\n")):
        (tmp_path / f"{number}.conll").write_text(text)
        learned = [words.words for words in open_tagged(tmp_path / f"{number}.conll").examples()]
        found = [Sentence(one).words for one in join_sentences(iter(text.splitlines()))]
        assert found == [list(words) for words in learned]


def test_sentences_are_split_at_empty_lines() -> None:
    assert list(join_sentences(iter(["a", "b", "", " ", "c"]))) == ["a\nb", "", "c"]
    assert Sentence("").words == []


def test_bad_bytes_are_replaced_and_told(tag) -> None:
    done = tag(stdin=b"good\nb\xffd\n")
    assert done.out == "good\tO\n\nb\tO\n\ufffd\tO\nd\tO\n\n"
    assert "1 line was not valid UTF-8" in done.err


def test_words_and_conll_are_two_kinds_of_input(tag) -> None:
    assert tag("--words", "--conll").code == 2


class Fills(Unaware):
    """Fills every gap with a, b, c …"""

    info = TASKS["masked-lm"]

    def fill(self, texts: list[str], k: int) -> list[list[list[Candidate]]]:
        letters = list(enumerate("abc"[:k], 1))
        guesses = [[Candidate(f"▁{one}", 0.5 / n, text.replace("[MASK]", one)) for n, one in letters] for text in texts]
        return [[each] * text.count("[MASK]") for text, each in zip(texts, guesses, strict=True)]


fill = answering("fill", Fills)


def test_a_line_for_each_guess(fill) -> None:
    done = fill("-k", "2", stdin="the [MASK]\t.\n[MASK] ä [MASK]\n".encode()).succeeds()
    guesses = ["0.5000\t▁a\ta ä a", "0.2500\t▁b\tb ä b"]
    assert done.out.splitlines() == ["0.5000\t▁a\tthe a .", "0.2500\t▁b\tthe b .", *guesses, *guesses]


def test_a_line_without_a_gap_stays_and_is_told_but_an_empty_one_is_not(fill) -> None:
    done = fill("-k", "1", stdin=b"[MASK]\n\nnothing\there\n")
    assert done.out == "0.5000\t▁a\ta\n\n\t\tnothing here\n"
    assert "line 3 has no [MASK]" in done.err
    assert "line 2" not in done.err
    assert fill(stdin=b"\xef\xbb\xbf").out == ""  # a file of nothing but that has no line


def test_json_has_an_object_for_each_line(fill) -> None:
    done = fill("--json", "--k", "1", stdin=b"[MASK] x [MASK]\nno gap\n\n")
    first, second, third = map(json.loads, done.out.splitlines())
    assert first == {"text": "[MASK] x [MASK]", "gaps": [[{"piece": "▁a", "probability": 0.5, "text": "a x a"}]] * 2}
    assert second == {"text": "no gap", "gaps": []}
    assert third == {"text": "", "gaps": []}
    assert done.err == ""


@pytest.mark.parametrize("k", ["0", "-3"])
def test_no_guesses_are_refused(regard, k: str) -> None:
    regard("fill", "nowhere", "--k", k).refuses("--k")
