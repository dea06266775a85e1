"""Conversion of models: import of every kind that others make, export to Hugging Face's layout and CTranslate2."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Literal, get_args

from torch import Tensor

from regard.config import Recipe, recipe_toml
from regard.data.prepare.folder import sha256_of
from regard.models import store
from regard.runs.convert.ctranslate2_export import ctranslate2_files
from regard.runs.convert.hub import CONFIG
from regard.runs.convert.hub_export import hub_files
from regard.runs.convert.hub_import import ImportedModel
from regard.runs.convert.kinds import read_foreign_model
from regard.runs.convert.layouts import DECIDING, Exports, exports
from regard.runs.convert.side_files import as_json
from regard.runs.convert.translator_files import language_tokens
from regard.system import disk
from regard.system.errors import Option, RegardError, UsageError
from regard.tasks.assets import AnswerAssets, ImageAssets, TextAssets
from regard.tasks.classification.classifier import ClassAssets
from regard.tasks.kinds import labels_examples
from regard.tasks.model_folder import MODEL, RECIPE, load
from regard.tasks.model_path import CARD
from regard.tasks.protocols import Assets, Task
from regard.tasks.tagging.tagger import TagAssets
from regard.tasks.training import model_writer
from regard.text.language_tokens import shown
from regard.text.tokenizers.tokenizer import Tokenizer
from regard.text.tokenizers.vocabulary import TOKENIZER, AnyTokenizer, Vocabularies
from regard.training.checkpoints import manifest
from regard.training.checkpoints.files import Files
from regard.training.checkpoints.output_folder import fresh_folder, refuse_other

Form = Literal["huggingface", "ctranslate2"]
"""Export formats."""
NEEDED = ("ctranslate2", "transformers")
"""Packages by which CTranslate2 converts."""


def import_model(
    folder: Path | str,
    output: Path | str,
    task: str | None = None,
    base: Path | str | None = None,
    tell: Callable[[str], None] = lambda note: None,
) -> Task:
    """Import a model that others made as a model folder, and load it.

    Args:
        folder: in Hugging Face's layout, with the files of a tokenizer; of Marian (OPUS-MT, Firefox); of
            CTranslate2; a package of Argos Translate; or a LoRA of PEFT, which is merged into its base.
        output: must not exist, be empty, or hold this very model already.
        task: that it is to be for, where there is a choice; default: what the folder says.
        base: of a LoRA, in Hugging Face's layout; default: the folder beside it that it names.
        tell: called with what users of the model should know, if there is anything.

    Raises:
        UsageError: such a model is not for that task, or a base is not there.
        RegardError: it is no such folder, or of a model that has no counterpart here; the sentence names what.
    """
    folder, output = Path(folder), Path(output)
    refuse_other(output)
    found = read_foreign_model(folder, task, Path(base) if base else None)
    count = sum(weight.numel() for weight in found.weights.values())
    identity = sha256_of(folder / found.file)
    source = [
        f"Imported from the folder `{folder.resolve().name}`, {found.layout}; "
        f"its {found.file or 'content'} has the sha256 {identity[:16]}.",
        "For training data and licence see where it was published. Of the recipe only what the",
        "model is made of is known; how it was trained is not, and those sections are defaults.",
    ]
    assets = _assets(found)
    source += [known.sentence] if (known := getattr(assets, "languages", None)) else []
    text = model_writer.imported_card(found.recipe, count, source)
    contents: dict[str, Iterable[bytes | memoryview]] = {
        RECIPE: [recipe_toml(found.recipe).encode()],
        MODEL: store.chunks(found.weights),
        CARD: [text.encode()],
        **{name: [content] for name, content in assets.contents.items()},
    }
    if found.note:
        tell(found.note)
    with fresh_folder(output) as fresh:
        manifest.replace(fresh, contents, Files())
        return load(fresh, "cpu")  # what cannot be loaded is not left there


def _assets(found: ImportedModel) -> Assets:
    """The assets of the model."""
    if found.tokenizer is None:
        assert found.scale is not None
        return ImageAssets(found.scale, found.labels)
    if isinstance(found.tokenizer, Vocabularies):
        return found.tokenizer
    if found.recipe.info.learns_from == "pairs":
        assert isinstance(found.tokenizer, Tokenizer)
        languages = language_tokens(found.tokenizer.names[: found.tokenizer.symbols], begins=False)
        return Vocabularies(found.tokenizer, found.tokenizer, joint=True, languages=languages)
    if found.recipe.info.writes == "tags":
        scheme = found.recipe.tagging.scheme
        assert scheme != "auto"
        return TagAssets(found.tokenizer, found.labels, scheme=scheme)
    if found.recipe.info.learns_from == "prefixed":
        return AnswerAssets(found.tokenizer)
    if found.recipe.info.writes == "classes":
        return ClassAssets(found.tokenizer, found.labels)
    return TextAssets(found.tokenizer)


def export_model(folder: Path | str, output: Path | str, to: Form = "huggingface") -> list[str]:
    """Export a model folder for ``transformers`` or CTranslate2; returns notes on what is lost.

    Args:
        folder: a model folder; its manifest is verified.
        output: must not exist, be empty, or hold this very model already.
        to: ``huggingface``, or ``ctranslate2``, by its own converter where it is no translator.

    Raises:
        UsageError: the target format cannot hold the model (names the field), or a package is missing.
        RegardError: it is no model folder, or damaged.
    """
    folder, output = Path(folder), Path(output)
    if to not in get_args(Form):
        raise UsageError(f"{to!r} is no form; known are {', '.join(get_args(Form))}", Option("to"))
    refuse_other(output)
    fast = to == "ctranslate2"
    task = load(folder, "cpu")
    recipe, assets, tokenizer = task.recipe, task.assets, _tokenizer(task.assets)
    found = exports(recipe, tokenizer, dict(task.model.named_parameters()))
    found.refuse(to)
    if fast and not found.direct and (missing := [name for name in NEEDED if find_spec(name) is None]):
        raise UsageError(f"not installed: pip install {' '.join(missing)}", Option("to", to))
    if fast and found.direct:
        assert isinstance(assets, Vocabularies)
        with fresh_folder(output) as fresh:
            for name, content in ctranslate2_files(recipe, store.weights(task.model), assets).items():
                Files().write(fresh / name, content)
        return _left_to_callers(assets)
    labels, scale = getattr(assets, "labels", ()), getattr(assets, "scale", None)
    vocabularies = assets if isinstance(assets, Vocabularies) else None
    files = hub_files(recipe, _weights_with_temperature(task), tokenizer, labels, scale, vocabularies)
    with fresh_folder(output) as fresh:
        if fast:
            with TemporaryDirectory(dir=fresh) as between:
                theirs, made = Path(between, "theirs"), Path(between, "made")
                theirs.mkdir()
                _write(theirs, files)
                _run_converter(theirs, made)
                for path in made.iterdir():
                    path.rename(fresh / path.name)
        else:
            _write(fresh, files)
    return _left_out(task, found, fast)


def exports_of(folder: Path, recipe: Recipe, assets: object) -> Exports:
    """Export formats of a model folder; of one still in training, its later formats.

    Args:
        folder: a model folder, of whose weights those are read that decide.
        recipe: of the model.
        assets: of the model.

    Raises:
        RegardError: the file of the weights is damaged.
    """
    tokenizer, there = _tokenizer(assets), (folder / MODEL).exists()
    found = exports(recipe, tokenizer)
    if found.format == "t5" and there:
        return exports(recipe, tokenizer, store.some(folder / MODEL, DECIDING))
    return found


def _tokenizer(assets: object) -> AnyTokenizer | None:
    """The tokenizer of a model of texts, the source's of a translator."""
    return assets.source if isinstance(assets, Vocabularies) else getattr(assets, "tokenizer", None)


def _weights_with_temperature(task: Task) -> dict[str, Tensor]:
    """The weights, with the temperature and shift of the scores that were fitted, for which there are no fields."""
    weights = store.weights(task.model)
    fitted = getattr(task.assets, "fitted", None)
    if fitted is not None and (fitted.temperature, fitted.shift) != (1.0, 0.0):
        for name in ("head.classes.weight", "head.classes.bias"):
            weights[name] = weights[name] / fitted.temperature
        weights["head.classes.bias"] = weights["head.classes.bias"] + fitted.shift
    return weights


def _write(folder: Path, files: Mapping[str, bytes]) -> None:
    layer = Files()
    for name, content in files.items():
        (folder / name).parent.mkdir(exist_ok=True)
        layer.write(folder / name, [content])


def _run_converter(folder: Path, output: Path) -> None:
    """CTranslate2's own converter, from one folder to another; the tokenizer goes with it.

    The new folder adds ``</s>`` to what is read, and its tokenizer no more, whoever calls them. Without the sign every
    output is another one, and most programs give the pieces alone. Models without a decoder that reads have no such
    field.
    """
    import transformers
    from ctranslate2.converters import TransformersConverter

    transformers.utils.logging.set_verbosity_error()
    transformers.utils.logging.disable_progress_bar()
    copied = sorted(path.name for path in folder.iterdir() if "token" in path.name)
    try:
        TransformersConverter(str(folder), copy_files=copied).convert(str(output), force=True)
    except (ValueError, RuntimeError, NotImplementedError) as error:
        raise RegardError(f"CTranslate2 cannot convert it: {error}", Option("to", "ctranslate2")) from None
    config = disk.json_of(output / CONFIG)
    if "add_source_eos" in config:
        document = disk.json_of(output / TOKENIZER)
        (output / CONFIG).write_bytes(as_json({**config, "add_source_eos": True}))
        (output / TOKENIZER).write_bytes(as_json({**document, "post_processor": None}))


def _left_to_callers(assets: Vocabularies) -> list[str]:
    """What CTranslate2 leaves to who calls it, in sentences."""
    names, left = assets.target.names, []
    if assets.frame.prefix:
        said = json.dumps([names[id] for id in assets.frame.prefix], ensure_ascii=False)
        left.append(f"every translation begins with tokens that its caller gives: target_prefix={said}")
    if assets.languages is not None:
        where = (
            "the source's before a text, the target's as target_prefix"
            if assets.languages.begins
            else "the target's before a text"
        )
        said = shown(names[id] for id in assets.languages.ids.values())
        left.append(f"its caller puts the token of a language, {where}; they are {said}")
    return left


def _left_out(task: Task, found: Exports, fast: bool) -> list[str]:
    """What Hugging Face's layout, and CTranslate2, have no place for, in sentences."""
    recipe, assets = task.recipe, task.assets
    left = list[str]()
    if isinstance(assets, Vocabularies) and isinstance(assets.source, Tokenizer):  # others say it in their files
        left += _left_to_callers(assets)
    if labels_examples(task):
        threshold = recipe.classification.threshold or task.assets.fitted.threshold
        if threshold:
            left.append(f"the probability {threshold:.3g} below which nothing is believed has no place there")
    if fast and found.encodes:
        left.append("CTranslate2 holds the encoder alone, without what a head makes of its vectors")
    if fast and found.format == "t5" and found.own:
        left.append('it could write the symbol <pad>, which it never should: give suppress_sequences=[["<pad>"]]')
    return left
