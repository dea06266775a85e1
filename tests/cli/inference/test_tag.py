"""``regard tag``: CoNLL or JSON output, from raw lines, words, or CoNLL."""

import json
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace

import pytest

from regard.cli.inference.tag import Sentence, join_sentences
from regard.config import TASKS
from regard.data.corpora.tagged import open_tagged
from regard.tasks.tagging.tagger import TaggedSpan, TaggedText
from regard.text.tags import TaggedWords, places_of
from tests.cli.inference.fakes import Unaware


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


@pytest.fixture(autouse=True)
def _capitals(loaded) -> None:
    loaded(Capitals())


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
def test_each_line_becomes_its_words_and_an_empty_line(regard, given: bytes, expected: str) -> None:
    done = regard("tag", "model", stdin=given)
    assert done.code == 0, done.err
    assert done.out == expected


def test_words_are_cut_at_blanks_only(regard) -> None:
    assert regard("tag", "model", "--words", stdin=b"Ann's  a,b\tC\n\n").out == "Ann's\tB-X\na,b\tO\nC\tB-X\n\n\n"


def test_json_has_spans_with_their_characters(regard) -> None:
    done = regard("tag", "model", "--json", stdin="é Ann\n\n".encode())
    values = [json.loads(line) for line in done.out.splitlines()]
    span = {"start": 2, "end": 5, "label": "X", "text": "Ann", "probability": 0.333333}
    assert values == [{"text": "é Ann", "spans": [span]}, {"text": "", "spans": []}]
    words = json.loads(regard("tag", "model", "--json", "--words", stdin=b"a,b C\n").out)
    assert [span["start"] for span in words["spans"]] == [4]


def test_json_of_plain_tags_has_words(regard, loaded) -> None:
    loaded(Capitals("none"))
    value = json.loads(regard("tag", "model", "--json", stdin=b"a B\n").out)
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


def test_conll_gets_one_column_more(regard) -> None:
    done = regard("tag", "model", "--conll", stdin=CONLL.encode())
    assert done.out == (
        "-DOCSTART-\t-X-\n\n# sent_id = 1\n# text = Ann #x\nAnn\tNNP\tB-X\n#x\tTAG\tO\n\tO\t_\n\n"
        "a b O\n# c O\n\n\nAnn Q B-X\n\n"
    )
    alone = regard("tag", "model", "--conll", stdin=b"# a comment\nAnn\n#x\n")
    assert alone.out == "# a comment\nAnn\tB-X\n#x\tO\n\n"
    value, *_ = map(json.loads, regard("tag", "model", "--conll", "--json", stdin=b"b 1\nAnn 2\n").out.splitlines())
    assert value["text"] == "b Ann"
    assert regard("tag", "model", "--conll", stdin=b"").out == ""


def test_a_comment_is_no_word_though_it_has_as_many_words_as_there_are_columns(regard) -> None:
    given = b"# newpar\nAnna\tx\nwent\ty\n# So it\n#x\ty\n\n# Anna went\n#Anna\tx\n\n# All the rest\n"
    done = regard("tag", "model", "--conll", stdin=given)
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


def test_bad_bytes_are_replaced_and_told(regard) -> None:
    done = regard("tag", "model", stdin=b"good\nb\xffd\n")
    assert done.out == "good\tO\n\nb\tO\n\ufffd\tO\nd\tO\n\n"
    assert "1 line was not valid UTF-8" in done.err


def test_words_and_conll_are_two_kinds_of_input(regard) -> None:
    assert regard("tag", "model", "--words", "--conll").code == 2
