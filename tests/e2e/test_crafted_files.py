"""Whatever stands in the files of a folder: it is read, or one sentence names the file; nothing breaks or waits.

The folders keep their own sha256 right, so that only the look at what they say is left to notice it.
"""

import hashlib
import json
import os
import shutil
import warnings
from collections.abc import Callable, Iterator
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from regard.config import checksum
from regard.runs.conversion import import_model
from regard.runs.options import RecipeOptions, recipe_from_options
from regard.runs.train import train
from regard.system.errors import Stopped
from regard.tasks.model_folder import load
from regard.training.checkpoints import manifest
from regard.training.checkpoints.files import Entry
from tests.e2e.crafted import answered, crafted, crafted_toml
from tests.runs.convert.small_folders import TEXTS, byte_pairs, folder_of, word_pieces
from tests.tasks.small_tasks import EVERY, put

KINDS = (
    *("BertForMaskedLM", "BertForSequenceClassification", "BertForTokenClassification", "BertModel"),
    *("GPT2LMHeadModel", "T5ForConditionalGeneration", "ViTForImageClassification"),
)
SENTENCES = {
    "modules.json": [{"type": f"sentence_transformers.models.{kind}"} for kind in ("Transformer", "Pooling")],
    "1_Pooling/config.json": {"word_embedding_dimension": 12, "pooling_mode_mean_tokens": True},
    "sentence_bert_config.json": {"max_seq_length": 20, "do_lower_case": False},
}
PIXELS = {"do_rescale": True, "rescale_factor": 0.004, "image_mean": [0.5, 0.5], "image_std": [0.5, 0.5]}
INDEX = "model.safetensors.index.json"


@pytest.fixture
def many(request: pytest.FixtureRequest) -> Callable[[int, int], int]:
    """How many are drawn: the first number by default, the second with ``--all``."""
    return lambda few, all: all if request.config.getoption("--all") else few


@pytest.fixture(autouse=True)
def _no_warnings() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def sealed(folder: Path) -> None:
    """Give a folder a manifest of the files as they are."""
    raw = {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file() and path.name != manifest.NAME}
    entries = {name: Entry(len(held), hashlib.sha256(held).hexdigest()) for name, held in raw.items()}
    (folder / manifest.NAME).write_bytes(manifest.render(entries))


def with_own_sha256(document: bytes) -> bytes:
    """A JSON object that ends in the sha256 of its bytes; what is none stays what it is, so sealed."""
    head = document[:-1] + b", " if document.endswith(b"}") and document != b"{}" else document
    return checksum._end_json(head + b'"sha256": ')


def headers(path: Path, seed: object, count: int) -> Iterator[tuple[str, bytes]]:
    """A file of weights with crafted heads."""
    raw = path.read_bytes()
    size = int.from_bytes(raw[:8], "little")
    for what, head in crafted(json.loads(raw[8 : 8 + size]), seed, count):
        yield what, len(head).to_bytes(8, "little") + head + raw[8 + size :]


def every(path: Path, seed: object, count: int) -> Iterator[tuple[str, bytes]]:
    """What a file could hold instead, by its kind."""
    if path.name == manifest.NAME:
        entries = json.loads(path.read_bytes())
        del entries["sha256"]
        return ((what, with_own_sha256(held)) for what, held in crafted(entries, seed, count))
    if path.suffix == ".safetensors":
        return headers(path, seed, count)
    if path.suffix == ".toml":
        return crafted_toml(path.read_text(), seed, count)
    return crafted(json.loads(path.read_bytes()), seed, count)


@pytest.mark.one_of(6, minutes=0.5)
@pytest.mark.parametrize("name", EVERY)
def test_a_model_folder(tmp_path: Path, name: str, many: Callable[[int, int], int]) -> None:
    put(tmp_path, EVERY[name]())
    for path in sorted(path for path in tmp_path.iterdir() if path.suffix != ".md"):
        before = path.read_bytes()
        for what, held in every(path, path.name, many(8, 120)):
            path.write_bytes(held)
            if path.name != manifest.NAME:
                sealed(tmp_path)
            answered(f"{path.name}: {what}", lambda: load(tmp_path, "cpu"), tmp_path)
        path.write_bytes(before)
        sealed(tmp_path)
    load(tmp_path, "cpu")


def theirs(kind: str, folder: Path) -> None:
    """A folder in Hugging Face's layout with every file that is read of one."""
    folder_of(kind, folder)
    more = {"BertModel": SENTENCES, "ViTForImageClassification": {"preprocessor_config.json": PIXELS}}
    for name, values in more.get(kind, {}).items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(json.dumps(values))
    if kind in ("BertForMaskedLM", "GPT2LMHeadModel"):  # weights in parts
        raw = (folder / "model.safetensors").read_bytes()
        names = json.loads(raw[8 : 8 + int.from_bytes(raw[:8], "little")]).keys() - {"__metadata__"}
        (folder / "model.safetensors").rename(folder / "part.safetensors")
        (folder / INDEX).write_text(json.dumps({"weight_map": dict.fromkeys(sorted(names), "part.safetensors")}))
    if kind == "BertForSequenceClassification":  # the files of the first releases
        (folder / "tokenizer.json").unlink()
        vocabulary = word_pieces().get_vocab()
        (folder / "vocab.txt").write_text("".join(f"{word}\n" for word in sorted(vocabulary, key=vocabulary.get)))
    if kind == "GPT2LMHeadModel":
        (folder / "tokenizer.json").unlink()
        model = json.loads(byte_pairs().to_str())["model"]
        (folder / "vocab.json").write_text(json.dumps(model["vocab"]))
        (folder / "merges.txt").write_text("#version: 0.2\n" + "".join(f"{a} {b}\n" for a, b in model["merges"]))


def bring(folder: Path) -> None:
    """Import the folder ``theirs``, and use its tokenizer where it has one."""
    shutil.rmtree(folder / "ours", ignore_errors=True)
    task = import_model(folder / "theirs", folder / "ours")
    if (tokenizer := getattr(task.assets, "tokenizer", None)) is not None:
        tokenizer.decode_batch(tokenizer.ids_batch(TEXTS))


@pytest.mark.one_of(8, minutes=0.5)
@pytest.mark.parametrize("kind", KINDS)
def test_a_folder_that_is_brought_in(tmp_path: Path, kind: str, many: Callable[[int, int], int]) -> None:
    folder, brought = tmp_path / "theirs", partial(bring, tmp_path)
    theirs(kind, folder)
    for path in sorted(path for path in folder.rglob("*") if path.suffix in (".json", ".safetensors")):
        before = path.read_bytes()
        for what, held in every(path, path.name, many(5, 100)):
            path.write_bytes(held)
            answered(f"{path.name}: {what}", brought, tmp_path)
        path.write_bytes(before)
    brought()


def irregular(path: Path) -> Iterator[str]:
    """In the place of a file what is none."""
    makers: dict[str, Callable[[], None]] = {
        "a pipe": lambda: os.mkfifo(path),
        "a link to a device without an end": lambda: path.symlink_to("/dev/zero"),
        "a folder": lambda: path.mkdir(),
        "a link to nothing": lambda: path.symlink_to("nothing"),
    }
    before = path.read_bytes() if path.exists() else None
    for what, make in makers.items():
        path.unlink(missing_ok=True)
        make()
        yield what
        path.rmdir() if path.is_dir() else path.unlink()
    if before is not None:
        path.write_bytes(before)


@pytest.mark.one_of(8, minutes=0.1)
@pytest.mark.parametrize("kind", KINDS)
def test_what_is_no_file_in_a_folder_that_is_brought_in(tmp_path: Path, kind: str) -> None:
    folder, brought = tmp_path / "theirs", partial(bring, tmp_path)
    theirs(kind, folder)
    names = {path for path in folder.rglob("*") if path.is_file()}
    names |= {folder / name for name in ("special_tokens_map.json", "preprocessor_config.json", INDEX, "vocab.txt")}
    refused = sum(
        not answered(f"{path.name} is {what}", brought, tmp_path) for path in sorted(names) for what in irregular(path)
    )
    assert refused >= 6
    brought()


@pytest.mark.parametrize("name", ["translator", "tagger", "viewer"])
def test_what_is_no_file_in_a_model_folder(tmp_path: Path, name: str) -> None:
    put(tmp_path, EVERY[name]())
    for path in sorted(tmp_path.iterdir()):
        for what in irregular(path):
            assert not answered(f"{path.name} is {what}", lambda: load(tmp_path, "cpu"), tmp_path), (path, what)
    load(tmp_path, "cpu")


@pytest.mark.one_of(2)
@pytest.mark.parametrize("name", ["translator", "recurrent", "classifier", "viewer"])
def test_a_recipe_that_is_asked_for(tmp_path: Path, name: str, many: Callable[[int, int], int]) -> None:
    put(tmp_path, EVERY[name]())
    path = tmp_path / "recipe.toml"
    for what, held in crafted_toml(path.read_text(), name, many(60, 600)):
        path.write_bytes(held)
        answered(what, lambda: recipe_from_options(RecipeOptions(recipe=path), 1000), tmp_path)


class Once:
    """Asks to stop after so many questions."""

    def __init__(self, questions: int) -> None:
        self.left = questions

    def __call__(self) -> bool:
        self.left -= 1
        return self.left < 0


@pytest.mark.long(minutes=4)
@pytest.mark.parametrize("file", ["state.json", "resolved.toml", "index.json", "weights.safetensors"])
def test_a_run_that_is_unfinished(world: Path, tmp_path: Path, train_options: Any, file: str) -> None:
    words = list(map(str, train_options(world, world / "kept", 4)))
    settings = [word for before, word in pairwise(words) if before == "--set"]

    def go(output: Path, questions: int = 10**6) -> None:
        files = world / "a.en", world / "a.de"
        train(*files, output, settings=settings, steps=4, should_stop=Once(questions))

    with pytest.raises(Stopped):
        go(world / "kept", 2)
    run = world / "run"
    places = {"state.json": "checkpoints/step-*/state.json", "weights.safetensors": "checkpoints/step-*/weights.safe*"}
    (kept, *_) = (world / "kept/training").glob(places.get(file, "data/index.json" if file == "index.json" else file))
    for what, held in _held(kept, file):
        shutil.rmtree(run, ignore_errors=True)
        shutil.copytree(world / "kept", run)
        path = run / kept.relative_to(world / "kept")
        path.write_bytes(held)
        if file in places:
            sealed(path.parent)
        answered(f"{file}: {what}", lambda: go(run), tmp_path, "this run has")


def _held(path: Path, file: str) -> Iterator[tuple[str, bytes]]:
    """What a file of a run could hold instead; those with a sha256 of their own, with the right one."""
    if file == "resolved.toml":
        text = path.read_text().rpartition("# sha256")[0]
        yield from ((what, checksum._end_toml(held)) for what, held in crafted_toml(text, file, 60))
    elif file == "index.json":
        values = {name: value for name, value in json.loads(path.read_bytes()).items() if name != "sha256"}
        yield from ((what, with_own_sha256(held)) for what, held in crafted(values, file, 60))
    else:
        yield from every(path, file, 60)
