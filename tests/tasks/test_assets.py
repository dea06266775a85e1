"""What stands beside a model's weights: written and read it is the same, and damage is named."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from regard.system.errors import Damaged, RegardError
from regard.tasks.assets import LABELS, PREFIXES, AnswerAssets, FittedValues, TextAssets, json_content
from regard.tasks.classification.classifier import ClassAssets
from regard.tasks.classification.ngrams import NGRAMS, fit
from regard.text.tokenizers.tokenizer import learn
from tests.refusals import refused

TOKENIZER = learn(["the cat sees the dog"] * 3, 290, symbols=("[CLS]", "[MASK]"))
ASSETS = ClassAssets(TOKENIZER, ("b", "a|c", "ä\t\u2028"), FittedValues(0.1 + 0.2, 1 / 3))


def written(folder: Path, assets: TextAssets) -> Path:
    for name, content in assets.contents.items():
        (folder / name).write_bytes(content)
    return folder


@pytest.mark.parametrize("assets", [ASSETS, ClassAssets(TOKENIZER), ClassAssets(TOKENIZER, ("number",))])
def test_written_and_read_it_is_the_same(tmp_path: Path, assets: ClassAssets) -> None:
    read = type(assets).load(written(tmp_path, assets))
    assert (read.labels, read.fitted, read.sizes) == (assets.labels, assets.fitted, assets.sizes)
    assert read.tokenizer.sha256 == assets.tokenizer.sha256
    assert read.contents == assets.contents
    assert (tmp_path / LABELS).exists() == bool(assets.labels)
    (tmp_path / "tokenizer.json").unlink()
    with refused(RegardError, "tokenizer.json"):
        TextAssets.load(tmp_path)


def test_the_fingerprint_is_of_what_the_weights_mean() -> None:
    assert replace(ASSETS, fitted=FittedValues(3.0, 0.9)).sha256 == ASSETS.sha256
    others = {replace(ASSETS, labels=labels).sha256 for labels in (("a|c", "b", "ä\t\u2028"), ("b",), ())}
    assert len(others | {ASSETS.sha256}) == 4
    assert replace(ASSETS, tokenizer=learn(["other"], 285)).sha256 != ASSETS.sha256
    assert ASSETS.masking_id == TOKENIZER.mask
    assert TextAssets(learn(["a"], 280)).masking_id == TOKENIZER.unknown


@pytest.mark.parametrize(
    "changed",
    [
        *(None, []),
        *({"labels": value} for value in ([], ["a", 1], "abc", None)),
        *({"temperature": value} for value in (0, -1.0, "warm", float("nan"), float("inf"))),
        *({"threshold": value} for value in (float("nan"), None)),
        *({"format": value} for value in (99, "x")),
        *(b"", b"{", b"\xff\xfe", b"[" * 100_000),
    ],
)
def test_damage_is_named(tmp_path: Path, changed: Any) -> None:
    written(tmp_path, ASSETS)
    value = json.loads((tmp_path / LABELS).read_text())
    value = {**value, **changed} if isinstance(changed, dict) else changed
    (tmp_path / LABELS).write_bytes(value if isinstance(value, bytes) else json.dumps(value).encode())
    with refused(Damaged if changed == {"format": "x"} else RegardError, tmp_path / LABELS):
        ClassAssets.load(tmp_path)


def test_prefixes_are_kept_where_they_are_known(tmp_path: Path) -> None:
    assert not (written(tmp_path, AnswerAssets(TOKENIZER)) / PREFIXES).exists()
    assert AnswerAssets.load(tmp_path).prefixes == ()
    assets = AnswerAssets(TOKENIZER, prefixes=("sort", "", "turn\u2028 round"))
    read = type(assets).load(written(tmp_path, assets))
    assert read.prefixes == assets.prefixes
    assert read.sha256 == TextAssets(TOKENIZER).sha256
    for damaged in ([], [1], "abc", None):
        (tmp_path / PREFIXES).write_bytes(json_content({"prefixes": damaged}))
        with refused(RegardError, tmp_path / PREFIXES):
            AnswerAssets.load(tmp_path)


def test_ngrams_of_other_labels_are_refused(tmp_path: Path) -> None:
    ngrams = fit(["one", "two"], np.eye(2, dtype=np.bool_))
    written(tmp_path, replace(ASSETS, ngrams=ngrams))
    with refused(Damaged, tmp_path / NGRAMS, "2 labels"):
        ClassAssets.load(tmp_path)
