"""Tagged sentences in each of their forms: words, their places in the text with its real spacing, and their tags."""

from __future__ import annotations

import gzip
import json
import lzma
import re
from pathlib import Path

import pytest
import zstandard

from regard.data.corpora.conll import Conll, ConllU
from regard.data.corpora.pairs import Corpus
from regard.data.corpora.tagged import JsonTags, open_tagged
from regard.system.errors import RegardError, UsageError
from regard.text.tags import TaggedWords, detect

Sentences = list[list[tuple[str, str]]]
TWO: Sentences = [[("Ann", "B-PER"), ("Lee", "I-PER"), ("ran", "O")], [("Hi", "O")]]


def write(path: Path, text: str) -> Path:
    raw = text.encode()
    pack = {".gz": gzip.compress, ".xz": lzma.compress, ".zst": zstandard.compress}.get(path.suffix)
    path.write_bytes(pack(raw) if pack else raw)
    return path


def read(corpus: Corpus) -> list[TaggedWords]:
    return [TaggedWords.parse(text, written) for text, written in corpus.pairs()]


def sentences(corpus: Corpus) -> Sentences:
    return [list(zip(words.words, words.tags, strict=True)) for words in read(corpus)]


def in_columns(made: Sentences, form: str) -> str:
    return "\n".join("".join(form.format(word, tag) + "\n" for word, tag in one) for one in made)


def treebank(made: Sentences) -> str:
    return "\n".join(
        "# text = x\n"
        + "".join(f"{number}\t{word}\t_\tX\t{tag}" + 5 * "\t_" + "\n" for number, (word, tag) in enumerate(one, 1))
        for one in made
    )


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
    found = [
        open_tagged(tabs),
        open_tagged(blanks),
        open_tagged(third, "2,1"),
        open_tagged(bank, "xpos"),
        open_tagged(marked),
        open_tagged(listed),
    ]
    assert [type(one) for one in found] == [Conll, Conll, Conll, ConllU, JsonTags, JsonTags]
    for one in found:
        assert sentences(one) == sentences(one) == TWO
        assert [words.text for words in read(one)] == ["Ann Lee ran", "Hi"]
    lines = [5, 5, 5, 7, 2, 2]
    assert [one.where(1) for one in found] == [f"{one.name}:{line}" for one, line in zip(found, lines, strict=True)]


@pytest.mark.parametrize(
    ("text", "columns", "expected"),
    [
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
    ],
)
def test_columns_and_comments(tmp_path: Path, text: str, columns: str | None, expected: Sentences) -> None:
    assert sentences(open_tagged(write(tmp_path / "a.conll", text), columns)) == expected


def test_a_treebank_keeps_its_spacing(tmp_path: Path) -> None:
    rows = [
        ("1-2", "don't", "_", "SpaceAfter=No"),
        ("1", "do", "AUX", "_"),
        ("2", "n't", "PART", "_"),
        ("3", ".", "PUNCT", "Gloss=x|SpaceAfter=No"),
        ("3.1", "gone", "VERB", "_"),
        ("4", "10 000", "NUM", "_"),
        ("5-6", "zum", "_", "_"),
        ("5", "zu", "ADP", "_"),
        ("6", "dem", "DET", "_"),
    ]
    lines = [f"{number}\t{form}\t_\t{upos}" + 5 * "\t_" + f"\t{misc}\n" for number, form, upos, misc in rows]
    (words,) = read(open_tagged(write(tmp_path / "a.conllu", "# newdoc\n\n# x\n" + "".join(lines))))
    assert words.text == "don't.10 000 zum"
    assert words.words == ["do", "n't", ".", "10 000", "zu", "m"]
    assert words.tags == ("AUX", "PART", "PUNCT", "NUM", "ADP", "DET")


def test_spans_become_tags_of_words(tmp_path: Path) -> None:
    entry = {
        "text": "Die Berliner\tS-Bahn\nfährt 😀.",
        "entities": [{"start": 4, "end": 10, "label": "LOC"}, {"start": 13, "end": 19, "label": "PRO DUCT"}],
    }
    (words,) = read(open_tagged(write(tmp_path / "a.jsonl", json.dumps(entry))))
    assert words.text == "Die Berliner S-Bahn fährt 😀."
    assert words.words == ["Die", "Berlin", "er", "S", "-", "Bahn", "fährt", "😀", "."]
    assert words.tags == ("O", "B-LOC", "O", "B-PRO DUCT", "I-PRO DUCT", "I-PRO DUCT", "O", "O", "O")


def test_keys_are_chosen_and_numbers_are_tags(tmp_path: Path) -> None:
    path = write(tmp_path / "a.jsonl", '{"text": "x", "parts": ["a\\nb", "c"], "codes": [0, 7]}\n\n')
    assert sentences(open_tagged(path, "parts,codes")) == [[("a b", "0"), ("c", "7")]]
    assert sentences(open_tagged(write(tmp_path / "b.jsonl", '{"text": "", "spans": []}\n'))) == [[]]


@pytest.mark.parametrize(
    ("name", "text", "columns", "line", "message"),
    [
        ("a.conll", "a\tB\nb\n", None, 2, "has 1 column, but line 1 has 2; an empty line ends"),
        ("a.conll", "a X B\nb B\n", None, 2, "has 2 columns, but line 1 has 3"),
        ("a.conll", "\na\n", None, 2, "has 1 column, but a word and its tag are needed"),
        ("a.conll", "a\tB\n\tB\n", None, 2, "has no word"),
        ("a.conll", "a\tB\nb\t \n", None, 2, "has no tag"),
        ("a.conll", "a\tB\n", "1,3", 1, "has 2 columns, counted from 1; there is no column 3"),
        ("a.conll", "a\tB\n", "0,1", 1, "no column 0"),
        ("a.conll", "a\tB\n", "word,tag", 1, "names no column 'word'"),
        ("a.conllu", "1 a B\n", None, 1, "has 1 columns; CoNLL-U has 10"),
        ("a.conllu", "# x\n2" + "\ta" * 9 + "\n", None, 2, "does not follow word 0"),
        ("a.jsonl", '{"text": "a", "spans": []}\n{\n', None, 2, "is not JSON"),
        ("a.jsonl", "[]\n", None, 1, "an object with keys"),
        ("a.jsonl", '{"x": "a", "spans": []}\n', None, 1, "what is text; its keys are 'x', 'spans'"),
        ("a.jsonl", '{"text": "a"}\n', None, 1, "what is tag"),
        ("a.jsonl", '{"text": "a", "spans": []}\n{"text": "a"}\n', None, 2, "no key 'spans'"),
        ("a.jsonl", '{"text": "a", "spans": 3}\n', None, 1, "'spans' is not a list"),
        ("a.jsonl", '{"text": "a", "spans": [[0, 1]]}\n', None, 1, "is no span"),
        ("a.jsonl", '{"text": "a", "spans": [[0, 2, "x"]]}\n', None, 1, "holds nothing of a text of 1 char"),
        ("a.jsonl", '{"text": "a  b", "spans": [[1, 3, "x"]]}\n', None, 1, "holds nothing"),
        ("a.jsonl", '{"text": "ab", "spans": [[0, 2, "x"], [1, 2, "y"]]}\n', None, 1, "two spans overlap"),
        ("a.jsonl", '{"text": "ab", "spans": [[0, 2, null]]}\n', None, 1, "None is no tag"),
        ("a.jsonl", '{"words": ["a"], "tags": []}\n', None, 1, "1 words, but 0 tags"),
        ("a.jsonl", '{"words": ["a", ""], "tags": ["x", "y"]}\n', None, 1, "neither a text nor a list of words"),
        ("a.jsonl", '{"words": ["a"], "tags": [true]}\n', None, 1, "True is no tag"),
    ],
)
def test_what_is_wrong_is_said_with_file_and_line(
    tmp_path: Path, name: str, text: str, columns: str | None, line: int, message: str
) -> None:
    path = write(tmp_path / name, text)
    with pytest.raises(RegardError, match=message) as caught:
        list(open_tagged(path, columns).pairs())
    assert caught.value.where == f"{path}:{line}"


@pytest.mark.parametrize("name", ["a.conll", "a.conllu", "a.jsonl"])
def test_a_file_without_sentences_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(RegardError, match="holds no sentence"):
        list(open_tagged(write(tmp_path / name, "\n\n")).pairs())


def test_columns_nobody_knows(tmp_path: Path) -> None:
    path = write(tmp_path / "a.conllu", treebank(TWO))
    with pytest.raises(UsageError, match="no column of CoNLL-U; they are id, form"):
        list(open_tagged(path, "form,colour").pairs())
    with pytest.raises(UsageError, match="must name two columns"):
        open_tagged(path, "1,2,3")
    assert sentences(open_tagged(path, "5")) == TWO


@pytest.mark.parametrize(
    ("name", "scheme"),
    [
        ("ner-wnut17/dev.conll.gz", "bio"),
        ("ner-btc/dev.conll.gz", "bio"),
        ("ner-wikigold/wikigold.conll.gz", "io"),
        ("ner-crossner/ai.dev.conll.gz", "bio"),
        ("ud-en-ewt/dev.conllu.gz", "none"),
    ],
)
def test_public_sets_are_read_whole(data_folder: Path, name: str, scheme: str) -> None:
    if not (data_folder / name).is_file():
        pytest.skip(f"needs corpora: {name}")
    found = read(open_tagged(data_folder / name))
    assert detect(one.tags for one in found) == scheme
    column = 3 if "conllu" in name else -1
    no_word = re.compile(r"#.* = |\d+[.-]\d+\t" if "conllu" in name else "$")
    expected = []
    for line in gzip.decompress((data_folder / name).read_bytes()).decode().split("\n"):
        word = re.split("[ \t]+" if "wikigold" in name else "\t", line)
        if len(word) > 1 and word[0] not in ("", "-DOCSTART-") and not no_word.match(line):
            expected.append((word[1 if column == 3 else 0], word[column]))
    assert [pair for one in found for pair in zip(one.words, one.tags, strict=True)] == expected
