"""What a recipe tells a page of its model; the families are told in ``test_folders``."""

from __future__ import annotations

from regard.config import RnnSection, recipe_from
from regard.explore.facts import NOTHING, facts, labelled, positions_of, title
from regard.tasks.demo import RECIPE
from small_tasks import EVERY, spanner, tagger, viewer


def test_titles() -> None:
    def of(source: str, target: str) -> str:
        return title(recipe_from({"text": {"source_language": source, "target_language": target}}))

    assert of("en-GB", "deu") == "English → German"
    assert of("hsb", "de") == "hsb → German"
    assert of("und", "de") == "Translator"
    assert title(recipe_from(RECIPE)) == "English → German"
    assert [title(make().recipe) for make in (tagger, spanner, viewer)] == [
        "Tagger",
        "Model of missing spans",
        "Classifier of images",
    ]


def test_a_recurrence_has_no_positions() -> None:
    assert positions_of(RnnSection()) == "none"


def test_a_model_of_which_nothing_is_known_is_told_in_the_same_words() -> None:
    for name, make in EVERY.items():
        task = make()
        found = facts(task.recipe, task.assets)
        assert found.keys() == NOTHING.keys()
        assert labelled(task.recipe) == (name in ("classifier", "tagger", "viewer"))
        for key, value in NOTHING.items():
            assert value is None or isinstance(found[key], int | float if isinstance(value, int) else type(value)), key
