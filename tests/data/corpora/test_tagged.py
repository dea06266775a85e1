"""Tagged sentences in each of their forms: words, their places in the text with its real spacing, and their tags."""

import itertools
import json
import random
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from regard.data.corpora.corpus import Corpus
from regard.data.corpora.tagged import Conll, ConllU, JsonTags, _of_spans, open_tagged, shares
from regard.system.errors import RegardError, UsageError
from tests.data.corpora.packed import write
from tests.refusals import refused

Sentences = list[list[tuple[str, str]]]
TWO: Sentences = [[("Ann", "B-PER"), ("Lee", "I-PER"), ("ran", "O")], [("Hi", "O")]]


def sentences(corpus: Corpus) -> Sentences:
    return [list(zip(words.words, words.tags, strict=True)) for words in corpus.examples()]


def in_columns(made: Sentences, form: str) -> str:
    return "\n".join("".join(form.format(word, tag) + "\n" for word, tag in one) for one in made)


def row(number: str, form: str, upos: str = "X", misc: str = "_") -> str:
    return f"{number}\t{form}\t_\t{upos}" + 5 * "\t_" + f"\t{misc}\n"


def treebank(made: Sentences) -> str:
    rows = [[f"{n}\t{word}\t_\tX\t{tag}" + 5 * "\t_" + "\n" for n, (word, tag) in enumerate(one, 1)] for one in made]
    return "\n".join("# text = x\n" + "".join(one) for one in rows)


@pytest.mark.parametrize("ending", ["", ".gz", ".xz", ".zst"])
def test_every_form_gives_the_same_sentences_as_often_as_asked(tmp_path: Path, ending: str) -> None:
    tabs = write(tmp_path / f"a.conll{ending}", in_columns(TWO, "{}\t{}"))
    blanks = write(tmp_path / f"b.txt{ending}", in_columns(TWO, "{} NN x {}\r"))
    third = write(tmp_path / f"c.tsv{ending}", in_columns(TWO, "{1}\t{0}\tX\t_"))
    bank = write(tmp_path / f"d.conllu{ending}", treebank(TWO))
    spans = [{"text": "Ann Lee ran", "spans": [[0, 7, "PER"]]}, {"text": "Hi", "spans": []}]
    marked = write(tmp_path / f"e.jsonl{ending}", "\n".join(map(json.dumps, spans)))
    lists = [{"tokens": [word for word, _ in one], "ner_tags": [tag for _, tag in one]} for one in TWO]
    listed = write(tmp_path / f"f.jsonl{ending}", "\n".join(map(json.dumps, lists)))
    columns = {third: "2,1", bank: "xpos"}
    found = [open_tagged(path, columns.get(path)) for path in (tabs, blanks, third, bank, marked, listed)]
    assert [type(one) for one in found] == [Conll, Conll, Conll, ConllU, JsonTags, JsonTags]
    for one in found:
        assert sentences(one) == sentences(one) == TWO
        assert [words.text for words in one.examples()] == ["Ann Lee ran", "Hi"]
    lines = [5, 5, 5, 7, 2, 2]
    assert [one.where(1) for one in found] == [f"{one.name}:{line}" for one, line in zip(found, lines, strict=True)]


COLUMNS = [
    ("-DOCSTART- -X- O\n\na X B\n\n\n\nb Y O\n", None, [[("a", "B")], [("b", "O")]]),
    ("a\tB\n \t\nb\tO\n\n \n", None, [[("a", "B")], [("b", "O")]]),
    ("# id 3 of the set\na\tB\n# and this\n#\tO\n", None, [[("a", "B"), ("#", "O")]]),
    ("# sent_id = 3\na X Y B\n# O\n# X Y O\n", None, [[("a", "B"), ("#", "O")]]),
    ("# O\na B\n", None, [[("#", "O"), ("a", "B")]]),
    ("# one\n\n# two\n\na B\n", None, [[("a", "B")]]),
    ("a b\tB c\n", None, [[("a b", "B c")]]),
    ("word\tpos\ttag\na\tX\tB\n", None, [[("a", "B")]]),
    ("id\tToken\tNER\n1\ta\tB\n", "token,ner", [[("a", "B")]]),
    ("1\ta\tB\n", "2,3", [[("a", "B")]]),
    ("a\tX\tB\n", "2", [[("a", "X")]]),
    ("a\tB\t\n", "2", [[("a", "B")]]),
    (" \tO\na \tB\n\tO\n", None, [[(" ", "O"), ("a ", "B")]]),
]


@pytest.mark.parametrize(("text", "columns", "expected"), COLUMNS)
def test_columns_and_comments(tmp_path: Path, text: str, columns: str | None, expected: Sentences) -> None:
    assert sentences(open_tagged(write(tmp_path / "a.conll", text), columns)) == expected


def test_a_treebank_keeps_its_spacing(tmp_path: Path) -> None:
    rows = [("1-2", "don't", "_", "SpaceAfter=No"), ("1", "do", "AUX", "_"), ("2", "n't", "PART", "_")]
    rows += [("3", ".", "PUNCT", "Gloss=x|SpaceAfter=No"), ("3.1", "gone", "VERB", "_"), ("4", "10 000", "NUM", "_")]
    rows += [("5-6", "zum", "_", "_"), ("5", "zu", "ADP", "_"), ("6", "dem", "DET", "_")]
    path = write(tmp_path / "a.conllu", "# newdoc\n\n# x\n" + "".join(itertools.starmap(row, rows)))
    (words,) = open_tagged(path).examples()
    assert words.text == "don't.10 000 zum"
    assert words.words == ["do", "n't", ".", "10 000", "zu", "m"]
    assert words.tags == ("AUX", "PART", "PUNCT", "NUM", "ADP", "DET")
    write(path, row("1-3", "dámelo") + row("1", "da", "VERB"))  # a range that is never filled
    assert sentences(open_tagged(path)) == [[("dámelo", "VERB")]]


def test_spans_become_tags_of_words(tmp_path: Path) -> None:
    entry = {
        "text": "Die Berliner\tS-Bahn\nfährt 😀.",
        "entities": [{"start": 4, "end": 10, "label": "LOC"}, {"start": 13, "end": 19, "label": "PRO DUCT"}],
    }
    (words,) = open_tagged(write(tmp_path / "a.jsonl", json.dumps(entry))).examples()
    assert words.text == "Die Berliner S-Bahn fährt 😀."
    assert words.words == ["Die", "Berlin", "er", "S", "-", "Bahn", "fährt", "😀", "."]
    assert words.tags == ("O", "B-LOC", "O", "B-PRO DUCT", "I-PRO DUCT", "I-PRO DUCT", "O", "O", "O")
    path = write(tmp_path / "a.jsonl", '{"text": "x", "parts": ["a\\nb", "c"], "codes": [0, 7]}\n\n')
    assert sentences(open_tagged(path, "parts,codes")) == [[("a b", "0"), ("c", "7")]]  # numbers are tags
    assert sentences(open_tagged(write(tmp_path / "b.jsonl", '{"text": "", "spans": []}\n'))) == [[]]


WRONG_ROWS = [
    (["1\ta\n"], "10"),
    ([row("1", "a"), row("1", "a")], "'1'"),
    ([row("x", "a")], "'x'"),
    ([row("2-1", "a")], "2-1"),
    ([row("1-2", "a"), row("1", "a"), row("2-3", "a")], "2-3"),
    ([row("1", "")], "word"),
    ([row("1", "a", "")], "tag"),
]

WRONG = [
    ("a.conll", "a\tB\nb\n", None, 2, ("1 column", "2")),
    ("a.conll", "a X B\nb B\n", None, 2, ("2", "3")),
    ("a.conll", "\na\n", None, 2, ("1 column",)),
    ("a.conll", "a\tB\n\tB\n", None, 2, ()),
    ("a.conll", "a\tB\nb\t \n", None, 2, ()),
    ("a.conll", "a\tB\n", "1,3", 1, ("2", "3")),
    ("a.conll", "a\tB\n", "word,tag", 1, ("'word'",)),
    ("a.conllu", "# x\n2" + "\ta" * 9 + "\n", None, 2, ("0",)),
    ("a.conllu", "1" + "\ta" * 9 + "\n# x\n2-3" + "\ta" * 9 + "\n# x\n\n", None, 3, ("2-3",)),
    ("a.conllu", "9" * 5000 + "\ta" * 9 + "\n", None, 1, ("'99999999999999999999'",)),
    ("a.conllu", "1-" + "9" * 5000 + "\ta" * 9 + "\n", None, 1, ("'1-999999999999999999'",)),
    ("a.jsonl", '{"x": "a", "spans": []}\n', None, 1, ("text", "'x', 'spans'")),
    ("a.jsonl", '{"text": "a"}\n', None, 1, ("tag",)),
    ("a.jsonl", '{"text": "a", "spans": []}\n{"text": "a"}\n', None, 2, ("'spans'",)),
    ("a.jsonl", '{"text": "a", "spans": 3}\n', None, 1, ("'spans'",)),
    ("a.jsonl", '{"text": "a", "spans": [[0, 1]]}\n', None, 1, ("[0, 1]",)),
    ("a.jsonl", '{"text": "a", "spans": [[0, 2, "x"]]}\n', None, 1, ("1",)),
    ("a.jsonl", '{"text": "a  b", "spans": [[1, 3, "x"]]}\n', None, 1, ("1 to 3",)),
    ("a.jsonl", '{"text": "ab", "spans": [[0, 2, "x"], [1, 2, "y"]]}\n', None, 1, ()),
    ("a.jsonl", '{"text": "ab", "spans": [[0, 2, null]]}\n', None, 1, ("None",)),
    ("a.jsonl", '{"words": ["a"], "tags": []}\n', None, 1, ("1", "0")),
    ("a.jsonl", '{"words": ["a", ""], "tags": ["x", "y"]}\n', None, 1, ("'words'",)),
    ("a.jsonl", '{"words": ["a"], "tags": [true]}\n', None, 1, ("True",)),
]
WRONG += [("a.conllu", "".join(rows), None, len(rows), (message,)) for rows, message in WRONG_ROWS]


@pytest.mark.parametrize(("name", "text", "columns", "line", "holds"), WRONG)
def test_what_is_wrong_is_said_with_file_and_line(tmp_path, name: str, text: str, columns, line: int, holds) -> None:
    path = write(tmp_path / name, text)
    with refused(RegardError, f"{path}:{line}", *holds):
        list(open_tagged(path, columns).examples())


def test_files_without_sentences_and_columns_nobody_knows(tmp_path: Path) -> None:
    for name in ("a.conll", "a.conllu", "a.jsonl"):
        with refused(RegardError, tmp_path / name):
            list(open_tagged(write(tmp_path / name, "\n\n")).examples())
    path = write(tmp_path / "a.conllu", treebank(TWO))
    with refused(UsageError, "columns", "'colour'", "id, form"):
        list(open_tagged(path, "form,colour").examples())
    with refused(UsageError, "columns", "9" * 30 + "'"):
        list(open_tagged(path, "9" * 5000).examples())
    with refused(UsageError, "columns", "1,2,3"):
        open_tagged(path, "1,2,3")
    with refused(UsageError, "columns", "0"):
        list(open_tagged(write(tmp_path / "a.conll", "a\tB\n"), "0,1").examples())
    assert sentences(open_tagged(path, "5")) == TWO


@given(st.text("ab .", min_size=1, max_size=30), st.data())
def test_spans_hold_the_words_within_them(text: str, data: st.DataObject) -> None:
    edges = sorted(data.draw(st.sets(st.integers(0, len(text)), max_size=6)))
    spans = [(a, b, "X") for a, b in itertools.pairwise(edges) if text[a:b].strip()][::2]
    found = _of_spans(text, spans)
    for (begin, end), tag in zip(found.places, found.tags, strict=True):
        inside = [span for span in spans if span[0] <= begin and end <= span[1]]
        starts = [begin == min(place[0] for place in found.places if place[0] >= span[0]) for span in inside]
        assert tag == ("O" if not inside else "B-X" if starts[0] else "I-X")


def test_many_spans_take_no_time() -> None:
    """Twenty thousand spans of a text: a walk over all words for each took a minute."""
    assert set(_of_spans("ab " * 20_000, [(3 * n, 3 * n + 2, "X") for n in range(20_000)]).tags) == {"B-X"}


SHARES = {
    "didn't": ("did n't", "did n't"),
    "Didn't": ("did not", "Did n't"),
    "zum": ("zu dem", "zu m"),
    "du": ("de le", "d u"),
    "dámelo": ("da me lo", "d á melo"),
    "al": ("al", "al"),
    "x": ("a b", "x x"),
    "aaaa": ("aaaa b c", "aa a a"),
}


@pytest.mark.parametrize("surface", SHARES)
def test_each_word_has_its_share(surface: str) -> None:
    words, parts = (text.split() for text in SHARES[surface])
    assert [surface[begin:end] for begin, end in shares(surface, words)] == parts


def test_shares_cover_the_token() -> None:
    drawn = random.Random(1)
    for _ in range(300):
        words = ["".join(drawn.choices("abc", k=drawn.randint(1, 4))) for _ in range(drawn.randint(1, 4))]
        surface = "".join(drawn.choices("abc", k=drawn.randint(len(words), 9)))
        found = shares(surface, words)
        assert len(found) == len(words)
        assert "".join(surface[begin:end] for begin, end in found) == surface
        assert all(begin < end for begin, end in found)
