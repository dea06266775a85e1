"""What ``export`` writes, ``import`` reads: the same weights, tokens, recipe and answers, for every family and task."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import regard
from regard.models import store
from regard.runs.conversion import export_model, import_model
from tests.runs.convert.small_exports import CASES, task_of, written
from tests.runs.convert.small_folders import PAIRS, TEXTS
from tests.runs.convert.small_peers import AUTO, transformers
from tests.tasks.small_tasks import put

ODD = [
    *("", " ", "  a  b ", "\t\u3000x\u00a0y", "ﬁne ½ Ⅳ", "e\u0301 \u00e9 İstanbul ẞ"),
    *("नमस्ते 你好 안녕", "👩\u200d👩\u200d👧 🇩🇪"),
    *("\u202eabc\u202c", "a\ufffdb", "\ud800", "\x00\x07", "don't I'LL we've", "1,234.5e-6 № ①", "A" * 300, "á" * 50),
]
"""Texts that tokenizers like to read in different ways."""
NAMES = ["</s>", "<unk> <pad>", "[CLS] a [MASK] b", "<extra_0><extra_1>", "a</s>b"]
"""Texts that hold the names of symbols, which stay text here."""


def there_and_back(name: str, folder: Path) -> tuple[Any, Any]:
    """A task, and what came back of it."""
    put(folder / "ours", task_of(name))
    export_model(folder / "ours", folder / "theirs")
    import_model(folder / "theirs", folder / "again")
    task, again = (regard.load(folder / each, device="cpu") for each in ("ours", "again"))
    return task, again


def answer(task: Any) -> Any:
    """What a model says of the texts, or of an image."""
    if task.name == "translation":
        return task.nbest(TEXTS, 2, beam=4, max_extra=4)
    if task.name == "text-to-text":
        return task.nbest(["a dog <extra_0> over the <extra_1> grass."], beam=1)[0][0].tokens[:12]
    if task.name == "image-classification":
        shape = (2, task.recipe.model.height, task.recipe.model.width, task.recipe.model.channels)
        return task.classify(list(np.arange(np.prod(shape)).reshape(shape) % 10))
    if task.name == "language-model":
        return task.generate("A dog", temperature=0, max_tokens=9), task.score(TEXTS[0])
    if task.name == "masked-lm":
        return task.fill(["a dog [MASK] over the grass."], 5)
    if task.name == "encoding":
        return task.encode(TEXTS).tolist()
    if task.name == "sentence-pairs":
        return task.classify(PAIRS)
    return task.tag(TEXTS) if task.name == "tagging" else task.classify(TEXTS)


def spelling(task: Any) -> Any:
    return task.assets.source if task.name == "translation" else task.assets.tokenizer


def same_task(task: Any, again: Any) -> None:
    """The same to the bit, in all that makes an answer."""
    assert again.recipe.model_dump() == task.recipe.model_dump()
    before, after = store.weights(task.model), store.weights(again.model)
    assert before.keys() == after.keys()
    assert all(torch.equal(before[name], after[name]) for name in before)
    assert again.assets.contents == task.assets.contents
    if task.name != "image-classification":
        for text in ODD + NAMES:
            assert spelling(again).encode(text) == spelling(task).encode(text)
    assert answer(again) == answer(task)


def contents(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.one_of(12)
@pytest.mark.parametrize("name", CASES)
def test_what_goes_out_comes_in_again_and_goes_out_as_before(name: str, tmp_path: Path) -> None:
    task, again = there_and_back(name, tmp_path)
    same_task(task, again)
    export_model(tmp_path / "again", tmp_path / "back")
    before, after = (contents(tmp_path / folder) for folder in ("theirs", "back"))
    assert before.keys() == after.keys()
    assert [name for name in before if before[name] != after[name]] == []


@pytest.mark.one_of(10)
@pytest.mark.parametrize("name", [name for name in CASES if not name.startswith("images")])
def test_their_tokenizer_reads_odd_texts_as_ours_does(name: str, tmp_path: Path) -> None:
    ours = spelling(task_of(name))
    theirs = transformers.AutoTokenizer.from_pretrained(written(name, tmp_path))
    for text in ODD:
        if text.isprintable() or text.encode("utf-8", "replace").decode() == text:  # they take no half characters
            framed = [*ours.begin, *ours.encode(text).ids, ours.end]
            assert theirs(text)["input_ids"] == (framed if name != "gpt" else framed[:-1]), text


@pytest.mark.one_of(6)
@pytest.mark.parametrize("name", ["marian", "pegasus", "t5", "classes", "pairs", "gpt"])
def test_what_they_save_anew_is_read_as_well(name: str, tmp_path: Path) -> None:
    written(name, tmp_path)
    kind = getattr(transformers, AUTO[CASES[name][0]])
    kind.from_pretrained(tmp_path / "theirs").save_pretrained(tmp_path / "saved")
    tokenizer = transformers.AutoTokenizer.from_pretrained(tmp_path / "theirs")
    tokenizer(TEXTS, padding=True, truncation=True)  # which the tokenizer keeps in its file
    tokenizer.save_pretrained(tmp_path / "saved")
    import_model(tmp_path / "saved", tmp_path / "again")
    same_task(*(regard.load(tmp_path / each, device="cpu") for each in ("ours", "again")))
