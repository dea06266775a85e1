"""What was asked for becomes one recipe, and what can be known before the data is known before it.

A card names files without their folders, and the command that makes the same.
"""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from regard.config import Recipe, recipe_from, without_left
from regard.data.corpora.pairs import PairJsonLines, PairTable, open_corpora
from regard.runs.options import (
    RecipeOptions,
    language_notes,
    named_files,
    recipe_from_options,
    shell_line,
    task_option,
)
from regard.system.errors import UsageError
from tests.refusals import refused


def made(pairs=100, *given, **asked) -> Recipe:
    return recipe_from_options(RecipeOptions(*given, **asked), pairs)


def test_later_ones_lie_on_top() -> None:
    file = {"training": {"rate": 1e-3, "warmup": 7}, "data": {"max_tokens": 100}}
    recipe = made(50_000, file, "small", ("training.warmup=9",), {"seed": 4, "training.steps": None})
    assert (recipe.training.rate, recipe.training.warmup, recipe.seed, recipe.model.d_model) == (1e-3, 9, 4, 256)
    assert recipe.text.vocabulary == 6000  # of the table by size
    assert recipe.training.steps is None


LENGTHS = [
    ({"steps": 9}, {"options": {"training.minutes": 5}}, (None, 5)),
    ({"steps": 9, "minutes": 2}, {"settings": ("training.minutes=5",)}, (None, 5)),
    ({"minutes": 2}, {"options": {"training.steps": 7}}, (7, None)),
    ({"minutes": 2}, {"settings": ("training.steps=7",)}, (7, None)),
    ({"steps": 9, "minutes": 2}, {"options": {"seed": 3}, "settings": ("training.rate=1",)}, (9, 2)),
    ({"steps": 9}, {"options": {"training.minutes": None, "training.steps": None}}, (9, None)),
    ({"rate": 1}, {"options": {"training.minutes": 5}}, (None, 5)),
]


@pytest.mark.parametrize(("given", "asked", "wanted"), LENGTHS)
def test_the_length_asked_for_takes_the_place_of_the_recipes(given: Any, asked: Any, wanted: Any) -> None:
    training = made(100, {"training": given}, **asked).training
    assert (training.steps, training.minutes) == wanted


BEGUN: dict[str, Any] = {
    "model": {"family": "bert", "layers": 1},
    "text": {"vocabulary": 320, "units": "pieces", "normalisation": "nfc", "lowercase": False},
}
FEW, RNN = {"task": "classification"}, {"family": "rnn-encoder", "d_model": 24, "pool": "attention"}
TAGS, STEPS = {"task": "tagging"}, {"training.steps": 9}
CROWDED = {"data": {"max_tokens": 2000}, "training": {"tokens": 1500}}


IMPOSSIBLE = [
    (RecipeOptions(settings=("training.minutes=2",), options=STEPS), ("minutes",)),
    (RecipeOptions(settings=("training.minutes=2", "training.steps=9"), options=STEPS), ("minutes",)),
    (RecipeOptions(settings=("training.rat=1",)), ("settings", "training.rate")),
    (RecipeOptions(preset="tinny"), ("preset", "'tiny'")),
    (RecipeOptions(preset="bert-tiny", options=FEW, begun=BEGUN), ("preset",)),
    (RecipeOptions(CROWDED), ("recipe", "data.max_tokens", "2000", "training.tokens", "1500")),
]


@pytest.mark.parametrize(("wishes", "holds"), IMPOSSIBLE)
def test_what_cannot_be_costs_no_look_at_the_data(wishes: RecipeOptions, holds: tuple[str, ...]) -> None:
    with refused(UsageError, *holds):
        task_option(wishes)


@pytest.mark.parametrize("pairs", [100, 200_000, 1_000_000])
def test_under_noam_the_rate_is_a_factor(pairs: int) -> None:
    noam = {"training": {"schedule": "noam"}}
    for asked in ({"settings": ("training.schedule=noam",)}, {"recipe": noam}, {"recipe": noam, "preset": "base"}):
        assert made(pairs, **asked).training.rate == 1.0
    assert made(pairs, noam, settings=("training.rate=2",)).training.rate == 2.0
    assert made(pairs, noam, settings=("training.schedule=cosine",)).training.rate < 0.01
    begun = {"training": {"rate": 1e-4}}
    assert made(pairs, noam, begun=begun).training.rate == 1.0
    assert made(pairs, begun=begun).training.rate == 1e-4


def test_a_guess_lies_below_the_recipe() -> None:
    guessed = {"text.source_language": None, "text.target_language": "de"}
    recipe = {"text": {"target_language": "gsw"}}
    for asked, target in (
        ({}, "de"),
        ({"recipe": recipe}, "gsw"),
        ({"recipe": recipe, "options": {"text.target_language": "nds"}}, "nds"),
        ({"settings": ("text.target_language=bar",)}, "bar"),
    ):
        text = made(100, guessed=guessed, **asked).text
        assert (text.source_language, text.target_language) == ("und", target)


NEITHER = {"text.source_language": None, "text.target_language": None}
BOTH = {"text.source_language": "en", "text.target_language": "de"}
CODES = {"source_language": "de", "target_language": "deu"}
SWAPPED = {"source_language": "de", "target_language": "en"}


LANGUAGES = [
    ({}, {"guessed": NEITHER}, "source_language=CODE target_language=CODE"),
    ({"source_language": "en"}, {"guessed": NEITHER}, "say target_language=CODE"),
    ({}, {"guessed": NEITHER, "options": BOTH}, None),
    ({}, {"guessed": BOTH}, None),
    (CODES, {"guessed": BOTH}, "text.source_language is de as recipe says, though the files end in .en; "),
    (CODES, {"guessed": BOTH}, "; change it by source_language='en'"),
    (SWAPPED, {"guessed": BOTH}, "end in .en and .de; change it by source_language='en' target_language='de'"),
    (CODES, {"guessed": BOTH, "options": {"text.source_language": "en"}}, None),
    (CODES, {"guessed": BOTH, "options": {"text.source_language": "fr"}}, None),
    (CODES, {"guessed": BOTH, "settings": ("text.source_language=en",)}, None),
]


@pytest.mark.parametrize(("text", "asked", "said"), LANGUAGES)
def test_what_is_said_of_languages_that_nobody_names_or_that_contradict_the_files(text, asked, said) -> None:
    notes = list(language_notes(RecipeOptions({"text": text}, **asked)))
    assert len(notes) == (said is not None)
    assert not notes or said in notes[0]


def test_separate_vocabularies_are_not_tied_in_three() -> None:
    assert made(settings=("text.joint=false",)).model.tie == "two"
    with refused(UsageError, "settings"):
        made(settings=("text.joint=false", 'model.tie="three"'))


def test_the_longest_sentence_is_known_before_the_data_and_a_batch_has_room_for_it() -> None:
    long = {"data": {"max_tokens": 2000}}
    assert [made(pairs, long).training.tokens for pairs in (100, 1_000_000)] == [2000, 8192]
    file, option = {"data": {"max_tokens": 100}}, ("data.max_tokens=20",)
    for given, longest in (((), 256), ((file,), 100), ((file, None, option), 20)):
        assert made(100, *given).data.max_tokens == longest


MISTAKES = [
    (("training.rate=0",), {}, "settings training.rate=0", "training.rate"),
    (("model.heads=8", "model.heads=x"), {}, "settings model.heads=x", "model.heads"),
    (("seed=-1",), {}, "settings seed=-1", "seed"),
    ((), {"training.steps": 0}, "steps", "must be greater than or equal to 1 (got 0)"),
    ((), {"data.weights": ("x",)}, "weights", "x"),
    ((), {"seed": -1}, "seed", "must be greater than or equal to 0 (got -1)"),
    (("training.tokens=32",), {}, "settings", "data.max_tokens"),
    (("model.heads=3",), {}, "settings", "heads"),
    (("data.max_tokens=2000", "text.joint=false"), {}, None, ""),
]


@pytest.mark.parametrize(("settings", "options", "where", "field"), MISTAKES)
def test_who_made_a_mistake_is_blamed(tmp_path: Path, settings, options, where, field) -> None:
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
        task_option(replace(wishes))


def test_columns_are_those_of_the_file(tmp_path: Path) -> None:
    table, objects = tmp_path / "a.tsv", tmp_path / "a.jsonl"
    table.touch()
    objects.touch()
    assert open_corpora((), (), [table], "3,2") == [PairTable(table, (3, 2))]
    assert open_corpora((), (), [objects], "en,de") == [PairJsonLines(objects, ("en", "de"))]
    assert open_corpora((), (), [objects], "1,2") == [PairJsonLines(objects, ("1", "2"))]


@pytest.mark.parametrize("columns", ["0,1", "en,de", "1", "1,", "-1,2", "1,²", "1,99999999999999999999"])
def test_a_table_has_no_such_columns_and_files_of_one_side_have_none(tmp_path: Path, columns: str) -> None:
    (tmp_path / "a.tsv").write_text("a\n")
    with refused(UsageError, "columns", "1,2"):
        open_corpora((), (), [tmp_path / "a.tsv"], columns)
    with refused(UsageError, "columns", "pairs"):
        open_corpora([tmp_path / "a.tsv"], [tmp_path / "a.tsv"], columns="1,2")


def test_the_text_of_a_model_that_is_begun_from_takes_the_place_of_the_recipes(tmp_path: Path) -> None:
    file = tmp_path / "recipe.toml"
    file.write_text("[text]\nvocabulary = 4000\nlowercase = true\nsample = 7\n[model]\nd_ff = 32\n")
    found = made(100, file, options=FEW, begun=BEGUN, settings=("text.vocabulary=320",))
    assert found.text.model_dump(include=set(BEGUN["text"])) == BEGUN["text"]
    assert (found.text.sample, found.model.layers, found.model.d_ff) == (7, 1, 32)
    assert made(100, file, options=FEW).text.lowercase
    file.write_text("[text]\nvocabulary = 4\n")
    with refused(UsageError, "recipe.toml", "text.vocabulary"):
        made(100, file, options=FEW, begun=BEGUN)


KEPT = [
    ("text.vocabulary=4000", "vocabulary = 320"),
    ("text.units=characters", 'units = "pieces"'),
    ("text.normalisation=none", 'normalisation = "nfc"'),
    ("text.lowercase=true", "lowercase = false"),
]


@pytest.mark.parametrize(("setting", "kept"), KEPT)
def test_another_text_than_that_of_the_model_that_is_begun_from_is_refused(setting: str, kept: str) -> None:
    with refused(UsageError, None, kept) as caught:
        task_option(RecipeOptions(options=FEW, begun=BEGUN, settings=(setting,)))
    assert str(caught.value.where).startswith(f"settings {setting.partition('=')[0]}")


READERS = [
    ((), "rnn-encoder", 0.5),
    (("model.cell=lstm", "model.d_model=64"), "rnn-encoder", 0.5),
    (("model.pool=attention",), "rnn-encoder", 0.5),
    (("model.d_model=64",), "rnn-encoder", 0.5),
    (("model.family=bert",), "bert", 0.0),
    (("model.heads=2",), "bert", 0.0),
    (("model.heads=2", "classification.adversarial=1"), "bert", 1.0),
    (("classification.adversarial=0",), "rnn-encoder", 0.0),
]


@pytest.mark.parametrize(("settings", "family", "moved"), READERS)
def test_few_labelled_texts_have_a_recurrent_reader_unless_what_it_has_not_is_named(settings, family, moved) -> None:
    def found(pairs, *settings, **asked):
        recipe = made(pairs, options=FEW, settings=settings, **asked)
        return recipe.model.family, recipe.classification.adversarial

    assert found(9_999, *settings) == (family, moved)
    begun = {"model": {"family": "bert", "d_model": 24, "heads": 2}}
    if not any(name in setting for setting in settings for name in ("cell", "pool")):
        other = ("bert", moved if moved == 1 else 0.0)
        assert found(10_000, *settings) == found(100, *settings, begun=begun) == other
    assert found(100, preset="classifier-tiny") == ("bert", 0.0)
    assert made(100, options=FEW, settings=("model.pool=first",)).model.pool == "first"
    assert found(100, "model.pool=first")[0] == "bert"
    with refused(UsageError, "settings model.pool=best", "'best'"):
        found(100, "model.pool=best")
    with refused(UsageError, "settings"):
        found(100, "model.cell=gru", "model.heads=2")


@pytest.mark.parametrize("model", [{"layers": 1}, {"pool": "mean", "dropout": 0.2}, {"family": "bert"}, RNN], ids=str)
def test_what_is_learned_against_goes_by_the_family_of_the_recipes_own_model(model: dict[str, Any]) -> None:
    found = made(500, {**FEW, "model": model}, options=FEW)
    assert found.model.family == model.get("family", "bert")
    assert found.classification.adversarial == (0.5 if model is RNN else 0.0)
    assert made(500, {"model": model}, options=FEW) == found  # a recipe that names no task is for what is asked for


@pytest.mark.parametrize("count", [500, 20_000, 2_000_000])
def test_a_recurrent_reader_that_is_asked_for_is_the_same_for_any_number_of_texts(count: int) -> None:
    settings = ("model.cell=lstm", "model.family=rnn-encoder", "model.pool=attention")
    for asked in ({"preset": "classifier-rnn"}, *({"settings": (setting,)} for setting in settings)):
        model = made(count, options=FEW, **asked).model
        assert (model.family, model.d_model, model.pool) == ("rnn-encoder", 256, "attention")
    tagger = made(count, options=TAGS, preset="classifier-rnn")
    assert (tagger.model.family, tagger.model.pool) == ("rnn-encoder", "mean")  # which pools no word by whole texts


TAGGERS = [
    ((), "rnn-encoder", True),
    (("tagging.crf=false",), "rnn-encoder", False),
    (("model.cell=gru", "model.units=words"), "rnn-encoder", True),
    (("model.heads=2",), "bert", False),
    (("model.norm_place=post",), "bert", False),
]


@pytest.mark.parametrize(("settings", "family", "crf"), TAGGERS)
def test_a_tagger_is_recurrent_and_chained_unless_a_transformer_is_asked_for(settings, family, crf) -> None:
    for count in (500, 20_000):
        found = made(count, settings=settings, options=TAGS)
        assert (found.model.family, found.tagging.crf, bool(found.model.word_features)) == (family, crf, True)
    from_words = made(500, options=TAGS, begun={"model": {"family": "bert", "d_model": 24, "heads": 2}})
    assert (from_words.model.family, from_words.tagging.crf) == ("bert", False)


def test_a_run_keeps_the_family_that_it_was_begun_with() -> None:
    before = made(500, options=TAGS, preset="tagger-tiny")
    fields = {f"{name}.{inner}": value for name in ("model", "training") for inner, value in getattr(before, name)}
    assert made(500, options=TAGS, earlier=fields) == before
    fields = {name: value for name, value in fields.items() if name != "model.word_features"}
    without = before.model_copy(update={"model": before.model.model_copy(update={"word_features": None})})
    assert made(500, options=TAGS, earlier=fields) == without
    asked = made(500, options=TAGS, earlier=fields, settings=("model.family=rnn-encoder",))
    assert asked.model.family == "rnn-encoder"  # what is asked for is asked for


CLASHES = [
    ({"preset": "classifier-rnn", "settings": ("model.family=bert",)}, ("preset", "rnn-encoder", "bert")),
    ({"preset": "classifier-tiny", "settings": ("model.family=rnn-encoder",)}, ("preset", "bert")),
    ({"begun": {"model": RNN}, "settings": ("model.family=bert",)}, ("start_from", "rnn-encoder")),
    ({"begun": {"model": {"family": "bert"}}, "recipe": {**FEW, "model": RNN}}, ("start_from", "bert")),
    ({"settings": ("model.heads=3",)}, (None, "d_model 256", "heads 3")),
    ({"settings": ("model.layers=65",)}, (None, "model.layers", "64")),
    ({"settings": ("model.pool=atention",)}, (None, "model.pool", "'attention'")),
    ({"settings": ("model.score=dot",)}, (None, "model.score", "family")),
]


@pytest.mark.parametrize(("asked", "holds"), CLASHES)
def test_what_does_not_go_together_is_said(asked: dict[str, Any], holds: tuple[str | None, ...]) -> None:
    with refused(UsageError, *holds):
        made(500, options=FEW, **asked)


@pytest.mark.parametrize(("task", "section"), [("tagging", "tagging"), ("text-to-text", "text_to_text")])
def test_adversarial_training_is_for_classes_alone(task: str, section: str) -> None:
    """A recipe of an earlier version has the field at 0."""
    name = f"{section}.adversarial"
    plain, old = {"task": task}, {"task": task, section: {"adversarial": 0.0}}
    assert made(500, old) == made(500, plain)
    asked = {**old, section: {"adversarial": 0.5}}
    assert recipe_from(without_left(asked)) == recipe_from(plain)  # of a finished model
    for given in ({"recipe": asked}, {"recipe": plain, "settings": (f"{name}=0.5",)}):
        with refused(UsageError, None, f"{name}: adversarial training is for classes alone now"):
            made(500, **given)


@pytest.mark.parametrize(("file", "wanted"), [("single", "regression"), ("regression", "single")])
def test_ngrams_of_the_table_go_by_the_kind_that_is_asked_for(file: str, wanted: str) -> None:
    found = made(500, {"classification": {"kind": file}}, options=FEW, settings=(f"classification.kind={wanted}",))
    assert found.classification.ngrams is (True if wanted == "single" else None)


@pytest.mark.parametrize(
    ("task", "more"), [("sentence-pairs", {}), ("image-classification", {}), ("classification", {"kind": "regression"})]
)
def test_ngrams_are_for_labels_of_single_texts(task: str, more: dict[str, Any]) -> None:
    with refused(UsageError, "recipe", "for labels of single texts; leave it out"):
        recipe_from({"task": task, "classification": {"ngrams": True, **more}})
    recipe_from({"task": task, "classification": {"ngrams": False, **more}})


NGRAMS = ("classification", "ngrams")
READS = {"classification": NGRAMS, "sentence-pairs": NGRAMS, "tagging": ("model", "word_features")}
AS_BERT = "model.norm_place=post model.pool=first model.pooler=true"
AS_TAGGER = "model.norm_place=post model.pool=first model.positions=learned model.embedding_norm=true model.segments=1"


BESIDE_PIECES = [
    ("classification", "", True),
    ("classification", "classification.ngrams=false", False),
    ("classification", "classification.kind=multi", True),
    ("classification", "classification.kind=regression", False),
    ("sentence-pairs", "", False),
    ("classification", "model.family=bert", True),
    ("classification", AS_BERT, False),
    ("classification", f"{AS_BERT} classification.ngrams=true", True),
    ("tagging", "", True),
    ("tagging", "model.word_features=0", False),
    ("tagging", "model.norm_place=post", True),
    ("tagging", AS_TAGGER, False),
]


@pytest.mark.parametrize(("task", "settings", "there"), BESIDE_PIECES)
def test_what_no_other_format_reads_is_left_out_where_a_model_can_be_exported(task, settings, there) -> None:
    recipe = made(12_000, settings=settings.split(), options={"task": task})
    section, name = READS[task]
    assert bool(getattr(getattr(recipe, section), name)) == there


def test_a_command_has_the_names_of_the_command_line_and_no_folder(tmp_path: Path, monkeypatch) -> None:
    options = {
        "source": [Path("/corpora/a b.en"), "x/c.en"],
        "target": "/corpora/a.de",
        "output": Path("out/model"),
        "start_from": Path("/models/bert"),
        "settings": ("model.d_model=8", "text.units=characters"),
        "weights": (1.0, 0.5),
        "minutes": 10.0,
        "steps": None,
        "columns": "label text",
        "despite_check": True,
        "tensorboard": False,
        "allow_mismatch": (),
    }
    assert shell_line("train", options) == (
        "regard train --source 'a b.en' --source c.en --target a.de --output model --from bert --set model.d_model=8 "
        "--set text.units=characters --weight 1 --weight 0.5 --minutes 10 --columns 'label text' --despite-check"
    )
    for recipe in ("/etc/recipe.toml", {"seed": 2}):  # named whether it is a file or values
        assert shell_line("train", {"recipe": recipe}) == "regard train --recipe recipe.toml"
    compared = shell_line("compare", {"steps": 3}, [Path("/a/gru.toml"), "b.toml"])
    assert compared == "regard compare gru.toml b.toml --steps 3"
    monkeypatch.chdir(tmp_path)
    assert shell_line("train", {"output": "."}) == f"regard train --output {tmp_path.name}"


def test_each_file_is_named_once() -> None:
    found = named_files(["/x/a", "b"], "b", None, [Path("y/a")], [])
    assert found == (("a", Path("/x/a")), ("b", Path("b")), ("a", Path("y/a")))
