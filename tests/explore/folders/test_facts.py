"""Facts about a model from its recipe; families are covered in ``test_folder``."""

from __future__ import annotations

from regard.config import RnnSection, recipe_from
from regard.explore.folders.facts import NOTHING, facts, has_labels, positions_of, regularisation, title
from regard.runs.demo.translation import RECIPE
from tests.tasks.small_tasks import EVERY, classifier, recurrent, spanner, tagger, viewer


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
        assert has_labels(task.recipe) == (name in ("classifier", "reader", "tagger", "viewer"))
        for key, value in NOTHING.items():
            assert value is None or isinstance(found[key], int | float if isinstance(value, int) else type(value)), key


def test_what_makes_the_loss_of_training_another_is_told() -> None:
    """Smoothing where one answer of several is right, dropout where there is any."""
    for make, known in ((classifier, True), (lambda: classifier("multi"), False), (recurrent, True), (tagger, True)):
        recipe = make().recipe
        shares = {"label_smoothing": recipe.training.label_smoothing if known else 0, "dropout": recipe.model.dropout}
        assert regularisation(recipe) == {name: share for name, share in shares.items() if share}
    moved = recipe_from({"task": "classification", "classification": {"adversarial": 0.5}})
    assert regularisation(moved)["adversarial"] == 0.5
    assert "dropout" not in regularisation(recurrent(dropout=0.0).recipe)
    plain = recipe_from({"training": {"label_smoothing": 0}, "model": {"dropout": 0.25}})
    assert regularisation(plain) == {"dropout": 0.25}
