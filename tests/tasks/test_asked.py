"""What was asked for becomes one recipe, and what can be known before the data is known before it."""

import os
from pathlib import Path

import pytest

from regard.data.corpora import JsonLines, Table
from regard.errors import UsageError
from regard.tasks.asked import Wishes, corpora, longest_asked, recipe_asked, refuse_pipes


def test_later_ones_lie_on_top() -> None:
    file = {"training": {"rate": 1e-3, "warmup": 7}, "data": {"max_tokens": 100}}
    wishes = Wishes(file, "small", ("training.warmup=9",), {"seed": 4, "training.steps": None})
    recipe = recipe_asked(wishes, 50_000)
    assert (recipe.training.rate, recipe.training.warmup, recipe.seed, recipe.model.d_model) == (1e-3, 9, 4, 256)
    assert recipe.text.vocabulary == 6000  # of the table by size
    assert recipe.training.steps is None


def test_separate_vocabularies_are_not_tied_in_three() -> None:
    assert recipe_asked(Wishes(settings=("text.joint=false",)), 100).model.tie == "two"
    with pytest.raises(UsageError, match="joint"):
        recipe_asked(Wishes(settings=("text.joint=false", 'model.tie="three"')), 100)


@pytest.mark.parametrize(
    ("wishes", "longest"),
    [
        (Wishes(), 256),
        (Wishes({"data": {"max_tokens": 100}}), 100),
        (Wishes({"data": {"max_tokens": 100}}, settings=("data.max_tokens=20",)), 20),
    ],
)
def test_the_longest_sentence_is_known_before_the_data(wishes: Wishes, longest: int) -> None:
    assert longest_asked(wishes) == longest
    assert recipe_asked(wishes, 100).data.max_tokens == longest


def test_a_mistyped_key_costs_no_look_at_the_data() -> None:
    with pytest.raises(UsageError, match=r"training\.rate"):
        longest_asked(Wishes(settings=("training.rat=1",)))


def test_columns_are_those_of_the_file(tmp_path: Path) -> None:
    table, objects = tmp_path / "a.tsv", tmp_path / "a.jsonl"
    table.touch()
    objects.touch()
    assert corpora((), (), [table], "3,2") == [Table(table, (3, 2))]
    assert corpora((), (), [objects], "en,de") == [JsonLines(objects, ("en", "de"))]
    assert corpora((), (), [objects], "1,2") == [JsonLines(objects, ("1", "2"))]


@pytest.mark.parametrize("columns", ["0,1", "en,de", "1", "1,", "-1,2", "1,²", "1,99999999999999999999"])
def test_a_table_has_no_such_columns(tmp_path: Path, columns: str) -> None:
    (tmp_path / "a.tsv").touch()
    with pytest.raises(UsageError, match="two columns like 1,2"):
        corpora((), (), [tmp_path / "a.tsv"], columns)


def test_what_can_be_read_once_is_no_corpus(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "file").touch()
    refuse_pipes([tmp_path / "file", tmp_path, tmp_path / "nothing"])
    with pytest.raises(UsageError, match="is a pipe"):
        refuse_pipes([tmp_path / "file", tmp_path / "pipe"])
