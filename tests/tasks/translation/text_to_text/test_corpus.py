"""Prefixed pairs are read from every form, encoded as the task reads and writes them, and found again as texts."""

import json
from pathlib import Path

import numpy as np
import pytest

from regard.config import recipe_from
from regard.data.corpora.corpus import TextPair, no_progress
from regard.data.corpora.scan import DataScan
from regard.data.prepare.encoders import RefusedExample
from regard.system.errors import RegardError, UsageError
from regard.tasks.translation.text_to_text import corpus as prefixed
from regard.tasks.translation.text_to_text.corpus import PrefixedPair, open_prefixed, with_prefix
from regard.tasks.translation.text_to_text.training import TextToTextJob
from tests.refusals import refused
from tests.tasks.small_tasks import tokenizer

PAIRS = [PrefixedPair("sort", "b, a", "a b"), PrefixedPair("turn round", "a b", "b a")]
BARE = [PrefixedPair("", *pair[1:]) for pair in PAIRS]


def json_lines(*keys: str) -> str:
    return "".join(json.dumps(dict(zip(keys, pair[-len(keys) :], strict=True))) + "\n" for pair in PAIRS)


@pytest.mark.parametrize(
    ("name", "content", "columns", "found"),
    [
        ("p.tsv", "sort\tb, a\ta b\nturn round\ta b\tb a\n", None, PAIRS),
        ("p.tsv", "b, a\ta b\na b\tb a\n", None, BARE),
        ("p.tsv", "Target\tsource\tTASK\na b\tb, a\tsort\nb a\ta b\tturn  round\n", None, PAIRS),
        ("p.tsv", "source\ttarget\tnumber\nb, a\ta b\t1\na b\tb a\t2\n", None, BARE),
        ("p.csv", 'sort,"b, a",a b\nturn round,a b,b a\n', None, PAIRS),
        ("p.csv", 'o,i\na b,"b, a"\nb a,a b\n', "i,o", BARE),
        ("p.tsv", "source\ttarget\tx\nb, a\ta b\t1\na b\tb a\t2\n", "1,2", BARE),
        ("p.txt", "a b\tb, a\tsort\nb a\ta b\tturn round\n", "3,2,1", PAIRS),
        ("p.jsonl", json_lines("task", "input", "output"), None, PAIRS),
        ("p.jsonl", json_lines("question", "answer"), None, BARE),
        ("p.jsonl", json_lines("x", "y", "z"), "x,y,z", PAIRS),
    ],
)
def test_every_form(tmp_path: Path, name: str, content: str, columns: str | None, found: list[PrefixedPair]) -> None:
    (tmp_path / name).write_text(content)
    corpus = open_prefixed(tmp_path / name, columns)
    assert list(corpus.examples()) == found
    first = len(content.splitlines()) - 1
    assert [corpus.where(number) for number in (0, 1)] == [f"{tmp_path / name}:{first + number}" for number in (0, 1)]


@pytest.mark.parametrize(
    ("name", "content", "columns", "error", "where"),
    [
        ("p.tsv", "a\n", None, RegardError, "p.tsv:1"),
        ("p.tsv", "a\tb\tc\td\n", None, RegardError, "p.tsv:1"),
        ("p.tsv", "a\tb\na\n", None, RegardError, "p.tsv:2"),
        ("p.tsv", "a\tb\n", "1,3", RegardError, "p.tsv:1"),
        ("p.tsv", "a\tb\n", "source,target", RegardError, "p.tsv:1"),
        ("p.jsonl", '{"source": "a"}\n', None, RegardError, "p.jsonl:1"),
        ("p.jsonl", '{"source": "a", "target": 3}\n', None, RegardError, "p.jsonl:1"),
        ("p.jsonl", '{"source": "a", "target": "b"}\n', "prefix,source,target", RegardError, "p.jsonl:1"),
        ("p.txt", "a\tb\n", None, UsageError, "p.txt"),
        ("p.tsv", "a\tb\n", "1", UsageError, "columns"),
        ("p.tsv", "a\tb\n", "1,2,3,4", UsageError, "columns"),
    ],
)
def test_what_is_wrong_is_named(tmp_path, name, content, columns, error, where) -> None:
    (tmp_path / name).write_text(content)
    with refused(error, where):
        list(open_prefixed(tmp_path / name, columns).examples())


def test_a_prefix_stands_before_the_source() -> None:
    assert with_prefix("b a", "sort") == "sort: b a"
    assert with_prefix("b a") == "b a"


def test_both_sides_end_and_what_is_empty_or_too_long_is_left_out() -> None:
    pieces = tokenizer()
    rows = "a|the|it;|the|it;a| |it;a|the|;a|the animal crosses the street|it;|it|the animal crosses the street"
    examples = [PrefixedPair(*row.split("|")) for row in rows.split(";")]
    one, bare, empty, blank, source, target = prefixed.PrefixedEncoder(pieces, 9).encode(examples, "train")
    for found, read in ((one, "a: the"), (bare, "the")):
        ((ids, said),) = found  # type: ignore[misc]
        assert ids.tolist() == [*pieces.encode(read).ids, pieces.end]
        assert said.tolist() == [*pieces.encode("it").ids, pieces.end]
    assert (empty, blank) == (RefusedExample("empty", 0), RefusedExample("empty", 1))
    assert (source, target) == (RefusedExample("too long", 0), RefusedExample("too long", 1))


def prepared(folder: Path, rows: list[PrefixedPair], **data: int) -> prefixed.PreparedPrefixed:
    path = folder / "a.jsonl"
    path.write_text("".join(json.dumps(row._asdict()) + "\n" for row in rows))
    values = {"task": "text-to-text", "text": {"vocabulary": 300}, "data": {"validation": 6, "max_tokens": 40, **data}}
    job = TextToTextJob(recipe_from(values), DataScan.of([open_prefixed(path)], None))
    return job.prepare(folder / "data", no_progress)


def test_what_was_prepared_is_found_again(tmp_path: Path) -> None:
    rows = [PrefixedPair(["sort", ""][n % 2], f"b:\t a {n} \\", f"a b {n}") for n in range(80)]
    found = prepared(tmp_path, [*rows, PrefixedPair("x", "", "y")])
    held = found.validation_examples()
    assert found.prefixes in (("sort", ""), ("", "sort"))
    assert len(held) == found.validation_source.count == found.validation_target.count == 6
    assert set(held) < set(rows)
    assert found.validation_pairs() == [TextPair(with_prefix(one.source, one.prefix), one.target) for one in held]
    assert (found.pairs, found.sizes, found.left_out["counts"]["empty"]) == (74, (74,), 1)
    pieces = found.start
    ids = found.validation_source.sentence(0)
    assert ids[-1] == 0
    assert (np.diff(found.source.lengths(0, np.arange(74))) != 0).any()
    assert pieces > max(int(found.source.sentence(n).max()) for n in range(74))


def test_no_source_is_learned_from_that_is_validated_on(tmp_path: Path) -> None:
    rows = [PrefixedPair("sort", f"b a {n % 40}", f"a b {n}") for n in range(80)]
    found = prepared(tmp_path, rows)
    held = {one.source for one in found.validation_examples()}
    assert found.left_out["counts"]["shared with validation"] == 2 * len(held) - 6
    assert found.pairs == 80 - 2 * len(held)


def test_prefixes_name_tasks_where_they_are_few_and_not_empty() -> None:
    assert prefixed.task_prefixes(["sort", "", "sort", "a b"]) == ("sort", "", "a b")
    assert prefixed.task_prefixes([]) == prefixed.task_prefixes(["", ""]) == ()
    assert len(prefixed.task_prefixes(map(str, range(1_000)))) == 1_000
    assert prefixed.task_prefixes(map(str, range(1_001))) == ()
    assert prefixed.prefix_list(["sort", ""]) == "sort, (no prefix)"
    assert prefixed.prefix_list(map(str, range(10))) == "0, 1, 2, 3, 4, 5, 6, 7, 8, 9"
    assert prefixed.prefix_list(map(str, range(11))) == "0, 1, 2, 3, 4, 5, 6, 7, 8, 9, …"


def test_nothing_to_learn_from_is_said(tmp_path: Path) -> None:
    with refused(RegardError, None, "4 tokens"):
        prepared(tmp_path, [PrefixedPair("sort", f"b a {n}", f"a b {n}") for n in range(20)], max_tokens=4)
