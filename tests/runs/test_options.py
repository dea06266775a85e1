"""What was asked for becomes one recipe, and what can be known before the data is known before it."""

import os
from pathlib import Path
from typing import Any

import pytest

from regard.config import Recipe, Training, recipe_from, recipe_toml, without_left
from regard.data.corpora.pairs import PairJsonLines, PairTable
from regard.runs.options import RecipeOptions, corpora, language_notes, recipe_from_options, task_option
from regard.system.errors import UsageError
from regard.tasks.protocols import refuse_pipes
from tests.refusals import refused


def test_later_ones_lie_on_top() -> None:
    file = {"training": {"rate": 1e-3, "warmup": 7}, "data": {"max_tokens": 100}}
    wishes = RecipeOptions(file, "small", ("training.warmup=9",), {"seed": 4, "training.steps": None})
    recipe = recipe_from_options(wishes, 50_000)
    assert (recipe.training.rate, recipe.training.warmup, recipe.seed, recipe.model.d_model) == (1e-3, 9, 4, 256)
    assert recipe.text.vocabulary == 6000  # of the table by size
    assert recipe.training.steps is None


@pytest.mark.parametrize(
    ("given", "asked", "wanted"),
    [
        ({"steps": 9}, {"options": {"training.minutes": 5}}, (None, 5)),
        ({"steps": 9, "minutes": 2}, {"settings": ("training.minutes=5",)}, (None, 5)),
        ({"minutes": 2}, {"options": {"training.steps": 7}}, (7, None)),
        ({"minutes": 2}, {"settings": ("training.steps=7",)}, (7, None)),
        ({"steps": 9, "minutes": 2}, {"options": {"seed": 3}, "settings": ("training.rate=1",)}, (9, 2)),
        ({"steps": 9}, {"options": {"training.minutes": None, "training.steps": None}}, (9, None)),
        ({"rate": 1}, {"options": {"training.minutes": 5}}, (None, 5)),
    ],
)
def test_the_length_asked_for_takes_the_place_of_the_recipes(given: Any, asked: Any, wanted: Any) -> None:
    training = recipe_from_options(RecipeOptions({"training": given}, **asked), 100).training
    assert (training.steps, training.minutes) == wanted


def test_a_models_recipe_can_be_used_with_minutes(tmp_path: Path) -> None:
    (tmp_path / "recipe.toml").write_text(recipe_toml(Recipe(training=Training(steps=500, minutes=2))))
    assert recipe_from_options(RecipeOptions(tmp_path / "recipe.toml"), 100).training.steps == 500
    wishes = RecipeOptions(tmp_path / "recipe.toml", options={"training.minutes": 5.0})
    asked = recipe_from_options(wishes, 100).training
    assert (asked.steps, asked.minutes) == (None, 5)


BEGUN: dict[str, Any] = {
    "model": {"family": "bert", "layers": 1},
    "text": {"vocabulary": 320, "units": "pieces", "normalisation": "nfc", "lowercase": False},
}
FEW, RNN = {"task": "classification"}, {"family": "rnn-encoder", "d_model": 24, "pool": "attention"}
TAGS = {"task": "tagging"}
STEPS = {"training.steps": 9}
CROWDED = {"data": {"max_tokens": 2000}, "training": {"tokens": 1500}}


@pytest.mark.parametrize(
    ("wishes", "holds"),
    [
        (RecipeOptions(settings=("training.minutes=2",), options=STEPS), ("--steps, --minutes",)),
        (RecipeOptions(settings=("training.minutes=2", "training.steps=9"), options=STEPS), ("--steps, --minutes",)),
        (RecipeOptions(settings=("training.rat=1",)), ("--set", "training.rate")),
        (RecipeOptions(preset="tinny"), ("--preset", "'tiny'")),
        (RecipeOptions(preset="bert-tiny", options=FEW, begun=BEGUN), ("--preset",)),
        (RecipeOptions(CROWDED), ("recipe", "data.max_tokens", "2000", "training.tokens", "1500")),
    ],
)
def test_what_cannot_be_costs_no_look_at_the_data(wishes: RecipeOptions, holds: tuple[str, ...]) -> None:
    with refused(UsageError, *holds):
        task_option(wishes)


@pytest.mark.parametrize("pairs", [100, 200_000, 1_000_000])
def test_under_noam_the_rate_is_a_factor(pairs: int) -> None:
    noam = {"training": {"schedule": "noam"}}
    named = RecipeOptions(settings=("training.schedule=noam",))
    for wishes in (named, RecipeOptions(noam), RecipeOptions(noam, "base")):
        assert recipe_from_options(wishes, pairs).training.rate == 1.0
    assert recipe_from_options(RecipeOptions(noam, settings=("training.rate=2",)), pairs).training.rate == 2.0
    assert recipe_from_options(RecipeOptions(noam, settings=("training.schedule=cosine",)), pairs).training.rate < 0.01


def test_a_guess_lies_below_the_recipe() -> None:
    guessed = {"text.source_language": None, "text.target_language": "de"}
    recipe = {"text": {"target_language": "gsw"}}
    for wishes, target in (
        (RecipeOptions(guessed=guessed), "de"),
        (RecipeOptions(recipe, guessed=guessed), "gsw"),
        (RecipeOptions(recipe, options={"text.target_language": "nds"}, guessed=guessed), "nds"),
        (RecipeOptions(settings=("text.target_language=bar",), guessed=guessed), "bar"),
    ):
        text = recipe_from_options(wishes, 100).text
        assert (text.source_language, text.target_language) == ("und", target)


def test_languages_that_nobody_names_are_asked_for() -> None:
    neither = {"text.source_language": None, "text.target_language": None}
    (note,) = language_notes(RecipeOptions(guessed=neither))
    assert "--source-language CODE --target-language CODE" in note
    (note,) = language_notes(RecipeOptions({"text": {"source_language": "en"}}, guessed=neither))
    assert "say --target-language CODE" in note
    named = {"text.source_language": "en", "text.target_language": "de"}
    assert not list(language_notes(RecipeOptions(options=named, guessed=neither)))
    assert not list(language_notes(RecipeOptions(guessed=named)))


def test_a_recipe_that_contradicts_the_files_is_told() -> None:
    guessed = {"text.source_language": "en", "text.target_language": "de"}
    recipe = {"text": {"source_language": "de", "target_language": "deu"}}
    (note,) = language_notes(RecipeOptions(recipe, guessed=guessed))
    assert note == (
        "text.source_language is de as recipe says, though the files end in .en; change it by --source-language en"
    )
    swapped = {"text": {"source_language": "de", "target_language": "en"}}
    (note,) = language_notes(RecipeOptions(swapped, guessed=guessed))
    assert note.endswith("though the files end in .en and .de; change it by --source-language en --target-language de")
    for named in ({"text.source_language": "en"}, {"text.source_language": "fr"}):
        assert not list(language_notes(RecipeOptions(recipe, options=named, guessed=guessed)))
    assert not list(language_notes(RecipeOptions(recipe, settings=("text.source_language=en",), guessed=guessed)))


def test_separate_vocabularies_are_not_tied_in_three() -> None:
    assert recipe_from_options(RecipeOptions(settings=("text.joint=false",)), 100).model.tie == "two"
    with refused(UsageError, "--set"):
        recipe_from_options(RecipeOptions(settings=("text.joint=false", 'model.tie="three"')), 100)


def test_the_longest_sentence_is_known_before_the_data_and_a_batch_has_room_for_it() -> None:
    wishes = RecipeOptions({"data": {"max_tokens": 2000}})
    assert [recipe_from_options(wishes, pairs).training.tokens for pairs in (100, 1_000_000)] == [2000, 8192]
    file, option = {"data": {"max_tokens": 100}}, ("data.max_tokens=20",)
    for given, longest in (((), 256), ((file,), 100), ((file, None, option), 20)):
        assert recipe_from_options(RecipeOptions(*given), 100).data.max_tokens == longest


@pytest.mark.parametrize(
    ("settings", "options", "where", "field"),
    [
        (("training.rate=0",), {}, "--set training.rate=0", "training.rate"),
        (("model.heads=8", "model.heads=x"), {}, "--set model.heads=x", "model.heads"),
        (("seed=-1",), {}, "--set seed=-1", "seed"),
        ((), {"training.steps": 0}, "--steps", "must be greater than or equal to 1 (got 0)"),
        ((), {"data.weights": ("x",)}, "--weight", "data.weights"),
        ((), {"seed": -1}, "--seed", "must be greater than or equal to 0 (got -1)"),
        (("training.tokens=32",), {}, "--set", "data.max_tokens"),
        (("model.heads=3",), {}, "--set", "heads"),
        (("data.max_tokens=2000", "text.joint=false"), {}, None, ""),
    ],
)
def test_who_made_a_mistake_is_blamed(
    tmp_path: Path, settings: tuple[str, ...], options: dict[str, object], where: str | None, field: str
) -> None:
    file = tmp_path / "good.toml"
    file.write_text("[training]\nrate = 0.01\n")
    wishes = RecipeOptions(file, settings=settings, options=options)
    if where is None:
        recipe_from_options(wishes, 100)
        return
    with refused(UsageError, where, field):
        recipe_from_options(wishes, 100)
    file.write_text("[training]\nrate = 0\n")
    with refused(UsageError, file, "training.rate"):
        task_option(wishes)


def test_columns_are_those_of_the_file(tmp_path: Path) -> None:
    table, objects = tmp_path / "a.tsv", tmp_path / "a.jsonl"
    table.touch()
    objects.touch()
    assert corpora((), (), [table], "3,2") == [PairTable(table, (3, 2))]
    assert corpora((), (), [objects], "en,de") == [PairJsonLines(objects, ("en", "de"))]
    assert corpora((), (), [objects], "1,2") == [PairJsonLines(objects, ("1", "2"))]


@pytest.mark.parametrize("columns", ["0,1", "en,de", "1", "1,", "-1,2", "1,²", "1,99999999999999999999"])
def test_a_table_has_no_such_columns_and_files_of_one_side_have_none(tmp_path: Path, columns: str) -> None:
    (tmp_path / "a.tsv").write_text("a\n")
    with refused(UsageError, "--columns", "1,2"):
        corpora((), (), [tmp_path / "a.tsv"], columns)
    with refused(UsageError, "--columns", "--pairs"):
        corpora([tmp_path / "a.tsv"], [tmp_path / "a.tsv"], columns="1,2")


def test_what_can_be_read_once_is_no_corpus(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "file").touch()
    refuse_pipes([tmp_path / "file", tmp_path, tmp_path / "nothing"])
    with refused(UsageError, "pipe"):
        refuse_pipes([tmp_path / "file", tmp_path / "pipe"])


def test_the_text_of_a_model_that_is_begun_from_takes_the_place_of_the_recipes(tmp_path: Path) -> None:
    file = tmp_path / "recipe.toml"
    file.write_text("[text]\nvocabulary = 4000\nlowercase = true\nsample = 7\n[model]\nd_ff = 32\n")
    found = recipe_from_options(RecipeOptions(file, options=FEW, begun=BEGUN, settings=("text.vocabulary=320",)), 100)
    assert found.text.model_dump(include=set(BEGUN["text"])) == BEGUN["text"]
    assert (found.text.sample, found.model.layers, found.model.d_ff) == (7, 1, 32)
    assert recipe_from_options(RecipeOptions(file, options=FEW), 100).text.lowercase
    file.write_text("[text]\nvocabulary = 4\n")
    with refused(UsageError, "recipe.toml", "text.vocabulary"):
        recipe_from_options(RecipeOptions(file, options=FEW, begun=BEGUN), 100)


@pytest.mark.parametrize(
    ("setting", "kept"),
    [
        ("text.vocabulary=4000", "vocabulary = 320"),
        ("text.units=characters", 'units = "pieces"'),
        ("text.normalisation=none", 'normalisation = "nfc"'),
        ("text.lowercase=true", "lowercase = false"),
    ],
)
def test_another_text_than_that_of_the_model_that_is_begun_from_is_refused(setting: str, kept: str) -> None:
    with refused(UsageError, None, kept) as caught:
        task_option(RecipeOptions(options=FEW, begun=BEGUN, settings=(setting,)))
    assert str(caught.value.where).startswith(f"--set {setting.partition('=')[0]}")


@pytest.mark.parametrize(
    ("settings", "family", "moved"),
    [
        ((), "rnn-encoder", 0.5),
        (("model.cell=lstm", "model.d_model=64"), "rnn-encoder", 0.5),
        (("model.pool=attention",), "rnn-encoder", 0.5),
        (("model.d_model=64",), "rnn-encoder", 0.5),
        (("model.family=bert",), "bert", 0.0),
        (("model.heads=2",), "bert", 0.0),
        (("model.heads=2", "classification.adversarial=1"), "bert", 1.0),
        (("classification.adversarial=0",), "rnn-encoder", 0.0),
    ],
)
def test_few_labelled_texts_have_a_recurrent_reader_unless_what_it_has_not_is_named(
    settings: tuple[str, ...], family: str, moved: float
) -> None:
    few = recipe_from_options(RecipeOptions(options=FEW, settings=settings), 9_999)
    assert (few.model.family, few.classification.adversarial) == (family, moved)
    begun = {"model": {"family": "bert", "d_model": 24, "heads": 2}}
    if not any(name in setting for setting in settings for name in ("cell", "pool")):
        many = recipe_from_options(RecipeOptions(options=FEW, settings=settings), 10_000)
        assert (many.model.family, many.classification.adversarial) == ("bert", moved if moved == 1 else 0.0)
        found = recipe_from_options(RecipeOptions(options=FEW, settings=settings, begun=begun), 100)
        assert (found.model.family, found.classification.adversarial) == ("bert", moved if moved == 1 else 0.0)
    named = recipe_from_options(RecipeOptions(options=FEW, preset="classifier-tiny"), 100)
    assert (named.model.family, named.classification.adversarial) == ("bert", 0.0)
    with refused(UsageError, "--set model.pool=best", "'best'"):
        recipe_from_options(RecipeOptions(options=FEW, settings=("model.pool=best",)), 100)
    first = recipe_from_options(RecipeOptions(options=FEW, settings=("model.pool=first",)), 100)
    assert (first.model.family, first.model.pool) == ("bert", "first")
    with refused(UsageError, "--set"):
        recipe_from_options(RecipeOptions(options=FEW, settings=("model.cell=gru", "model.heads=2")), 100)


@pytest.mark.parametrize("model", [{"layers": 1}, {"pool": "mean", "dropout": 0.2}, {"family": "bert"}, RNN], ids=str)
def test_what_is_learned_against_goes_by_the_family_of_the_recipes_own_model(model: dict[str, Any]) -> None:
    found = recipe_from_options(RecipeOptions(recipe={**FEW, "model": model}, options=FEW), 500)
    assert found.model.family == model.get("family", "bert")
    assert found.classification.adversarial == (0.5 if model is RNN else 0.0)
    silent = recipe_from_options(RecipeOptions(recipe={"model": model}, options=FEW), 500)
    assert silent == found  # a recipe that names no task is for that which is asked for


@pytest.mark.parametrize("count", [500, 20_000, 2_000_000])
def test_a_recurrent_reader_that_is_asked_for_is_the_same_for_any_number_of_texts(count: int) -> None:
    settings = ("model.cell=lstm", "model.family=rnn-encoder", "model.pool=attention")
    named = RecipeOptions(options=FEW, preset="classifier-rnn")
    for wishes in (named, *(RecipeOptions(options=FEW, settings=(setting,)) for setting in settings)):
        model = recipe_from_options(wishes, count).model
        assert (model.family, model.d_model, model.pool) == ("rnn-encoder", 256, "attention")
    tagger = recipe_from_options(RecipeOptions(options={"task": "tagging"}, preset="classifier-rnn"), count)
    assert (tagger.model.family, tagger.model.pool) == ("rnn-encoder", "mean")  # which pools no word by whole texts


@pytest.mark.parametrize(
    ("settings", "family", "crf"),
    [
        ((), "rnn-encoder", True),
        (("tagging.crf=false",), "rnn-encoder", False),
        (("model.cell=gru", "model.units=words"), "rnn-encoder", True),
        (("model.heads=2",), "bert", False),
        (("model.norm_place=post",), "bert", False),
    ],
)
def test_a_tagger_is_recurrent_and_chained_unless_a_transformer_is_asked_for(
    settings: tuple[str, ...], family: str, crf: bool
) -> None:
    for count in (500, 20_000):
        found = recipe_from_options(RecipeOptions(settings=settings, options=TAGS), count)
        assert (found.model.family, found.tagging.crf, bool(found.model.word_features)) == (family, crf, True)
    with_features = {"model": {"family": "bert", "d_model": 24, "heads": 2}}
    from_words = recipe_from_options(RecipeOptions(options=TAGS, begun=with_features), 500)
    assert (from_words.model.family, from_words.tagging.crf) == ("bert", False)


def test_a_run_keeps_the_family_that_it_was_begun_with() -> None:
    before = recipe_from_options(RecipeOptions(options=TAGS, preset="tagger-tiny"), 500)
    fields = {f"{name}.{inner}": value for name in ("model", "training") for inner, value in getattr(before, name)}
    assert recipe_from_options(RecipeOptions(options=TAGS, earlier=fields), 500) == before
    fields = {name: value for name, value in fields.items() if name != "model.word_features"}
    without = recipe_from_options(RecipeOptions(options=TAGS, earlier=fields), 500)
    assert without == before.model_copy(update={"model": before.model.model_copy(update={"word_features": None})})
    other = RecipeOptions(options=TAGS, earlier=fields, settings=("model.family=rnn-encoder",))
    assert recipe_from_options(other, 500).model.family == "rnn-encoder"  # what is asked for is asked for


@pytest.mark.parametrize(
    ("asked", "holds"),
    [
        ({"preset": "classifier-rnn", "settings": ("model.family=bert",)}, ("--preset", "rnn-encoder", "bert")),
        ({"preset": "classifier-tiny", "settings": ("model.family=rnn-encoder",)}, ("--preset", "bert")),
        ({"begun": {"model": RNN}, "settings": ("model.family=bert",)}, ("--from", "rnn-encoder")),
        ({"begun": {"model": {"family": "bert"}}, "recipe": {**FEW, "model": RNN}}, ("--from", "bert")),
        ({"settings": ("model.heads=3",)}, (None, "d_model 256", "heads 3")),
        ({"settings": ("model.layers=65",)}, (None, "model.layers", "64")),
        ({"settings": ("model.pool=atention",)}, (None, "model.pool", "'attention'")),
        ({"settings": ("model.score=dot",)}, (None, "model.score", "family")),
    ],
)
def test_what_does_not_go_together_is_said(asked: dict[str, Any], holds: tuple[str | None, ...]) -> None:
    with refused(UsageError, *holds):
        recipe_from_options(RecipeOptions(options=FEW, **asked), 500)


@pytest.mark.parametrize(("task", "section"), [("tagging", "tagging"), ("text-to-text", "text_to_text")])
def test_adversarial_training_is_for_classes_alone(task: str, section: str) -> None:
    """A recipe of an earlier version has the field at 0."""
    name = f"{section}.adversarial"
    plain, old = {"task": task}, {"task": task, section: {"adversarial": 0.0}}
    found = recipe_from_options(RecipeOptions(recipe=old), 500)
    assert found == recipe_from_options(RecipeOptions(recipe=plain), 500)
    asked = {**old, section: {"adversarial": 0.5}}
    assert recipe_from(without_left(asked)) == recipe_from(plain)  # of a finished model
    for wishes in (RecipeOptions(recipe=asked), RecipeOptions(recipe=plain, settings=(f"{name}=0.5",))):
        with refused(UsageError, None, f"{name}: adversarial training is for classes alone now"):
            recipe_from_options(wishes, 500)


@pytest.mark.parametrize(("file", "wanted"), [("single", "regression"), ("regression", "single")])
def test_ngrams_of_the_table_go_by_the_kind_that_is_asked_for(file: str, wanted: str) -> None:
    recipe = {"classification": {"kind": file}}
    found = recipe_from_options(RecipeOptions(recipe, options=FEW, settings=(f"classification.kind={wanted}",)), 500)
    assert found.classification.ngrams is (True if wanted == "single" else None)


@pytest.mark.parametrize(
    "values",
    [
        {"task": "sentence-pairs", "classification": {"ngrams": True}},
        {"task": "image-classification", "classification": {"ngrams": True}},
        {"task": "classification", "classification": {"ngrams": True, "kind": "regression"}},
    ],
)
def test_ngrams_are_for_labels_of_single_texts(values: dict[str, Any]) -> None:
    with refused(UsageError, "recipe", "for labels of single texts; leave it out"):
        recipe_from(values)
    recipe_from({**values, "classification": {**values["classification"], "ngrams": False}})


NGRAMS = ("classification", "ngrams")
READS = {"classification": NGRAMS, "sentence-pairs": NGRAMS, "tagging": ("model", "word_features")}


@pytest.mark.parametrize(
    ("task", "settings", "there"),
    [
        ("classification", (), True),
        ("classification", ("classification.ngrams=false",), False),
        ("classification", ("classification.kind=multi",), True),
        ("classification", ("classification.kind=regression",), False),
        ("sentence-pairs", (), False),
        ("classification", ("model.family=bert",), True),
        ("classification", ("model.norm_place=post", "model.pool=first", "model.pooler=true"), False),
        (
            "classification",
            ("model.norm_place=post", "model.pool=first", "model.pooler=true", "classification.ngrams=true"),
            True,
        ),
        ("tagging", (), True),
        ("tagging", ("model.word_features=0",), False),
        ("tagging", ("model.norm_place=post",), True),
        (
            "tagging",
            (
                "model.norm_place=post",
                "model.pool=first",
                "model.positions=learned",
                "model.embedding_norm=true",
                "model.segments=1",
            ),
            False,
        ),
    ],
)
def test_what_no_other_format_reads_is_left_out_where_a_model_can_be_exported(
    task: str, settings: tuple[str, ...], there: bool
) -> None:
    recipe = recipe_from_options(RecipeOptions(settings=settings, options={"task": task}), 12_000)
    section, name = READS[task]
    assert bool(getattr(getattr(recipe, section), name)) == there
