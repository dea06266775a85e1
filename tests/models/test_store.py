import json
from pathlib import Path

import pytest
import torch

from regard.config.weights import LARGEST_HEADER
from regard.models.build import transformer
from regard.models.presets import meta_model
from regard.models.store import check_weights, load_weights, refuse_infinite, some, to_bytes, weights
from regard.system.errors import Damaged, RegardError
from tests.models.small_models import section, small
from tests.refusals import refused


@pytest.fixture
def stored(tmp_path: Path) -> Path:
    path = tmp_path / "model.safetensors"
    path.write_bytes(to_bytes(weights(small(dtype=torch.float32))))
    return path


def fresh():
    return transformer(section(), 23, 23, key=99)


def reheaded(path: Path, change) -> None:
    """The same file with its header changed."""
    content = path.read_bytes()
    size = int.from_bytes(content[:8], "little")
    header = json.loads(content[8 : 8 + size])
    change(header)
    encoded = json.dumps(header).encode()
    path.write_bytes(len(encoded).to_bytes(8, "little") + encoded + content[8 + size :])


def test_tied_weights_are_stored_once(stored: Path) -> None:
    assert "encoder.input.tokens.weight" in weights(fresh())
    assert not any(name.startswith("output") for name in weights(fresh()))
    assert len(weights(transformer(section(tie="none"), 23, 23))) == len(weights(fresh())) + 2


def test_the_same_weights_are_the_same_bytes(stored: Path) -> None:
    model = fresh()
    load_weights(stored, model)
    assert to_bytes(weights(model)) == stored.read_bytes()


def test_a_weight_that_is_not_finite_is_refused_but_a_mask_may_be(tmp_path: Path) -> None:
    model = torch.nn.Linear(2, 3)
    model.register_buffer("mask", torch.full((2, 2), float("-inf")))
    path = tmp_path / "w"
    refuse_infinite(path, model)
    with torch.no_grad():
        model.bias[1] = float("nan")
    with refused(RegardError, path, "'bias'"):
        refuse_infinite(path, model)


NAME = "encoder.layers.0.attention.key.weight"
CONTENTS = {
    "empty": lambda content, size: b"",
    "seven bytes": lambda content, size: content[:7],
    "half a header": lambda content, size: content[: 8 + size // 2],
    "truncated": lambda content, size: content[:-5],
    "huge header": lambda content, size: (LARGEST_HEADER + 1).to_bytes(8, "little") + content[8:],
    "no json": lambda content, size: content[:8] + b"?" * size + content[8 + size :],
    "no object": lambda content, size: (2).to_bytes(8, "little") + b"[]",
    "a number": lambda content, size: (1).to_bytes(8, "little") + b"7",
    "deep": lambda content, size: (200_000).to_bytes(8, "little") + b"[" * 200_000,
    "not utf-8": lambda content, size: content[:8] + b"\xff" * size + content[8 + size :],
    "a pickle": lambda content, size: b"\x80\x02}q\x00." + content,
}
HEADERS = {
    "a name missing": (lambda header: header.pop(NAME), RegardError, f"'{NAME}'"),
    "a name too many": (lambda header: header.update(extra=dict(header[NAME])), RegardError, "'extra'"),
    "another name": (lambda header: header.update(Key=header.pop(NAME)), RegardError, f"'{NAME}'"),
    "another shape": (lambda header: header[NAME].update(shape=[6, 24]), RegardError, "F32 [6, 24]"),
    "another type": (lambda header: header[NAME].update(dtype="BF16"), RegardError, "BF16"),
    "no shape": (lambda header: header[NAME].pop("shape"), RegardError, "F32 None"),
    "an entry of another kind": (lambda header: header.update({NAME: 5}), RegardError, "None None"),
    "an entry too far": (lambda header: header[NAME].update(data_offsets=[0, 1 << 60]), RegardError),
    "newer": (lambda header: header["__metadata__"].update(format="2"), RegardError, "2"),
    "a format of words": (lambda header: header["__metadata__"].update(format="new"), Damaged),
    "a format of 5,000 digits": (lambda header: header["__metadata__"].update(format="9" * 5000), RegardError, "nine"),
    "metadata of another kind": (lambda header: header.update(__metadata__=[]), Damaged),
}


def damaged(stored: Path, kind: str) -> tuple[type[RegardError], tuple[str, ...]]:
    """Break the file in one way; the error, and the names and numbers that it must tell."""
    content = stored.read_bytes()
    if kind in ("missing", "a folder"):
        stored.unlink()
        if kind == "a folder":
            stored.mkdir()
    elif kind in HEADERS:
        change, error, *names = HEADERS[kind]
        reheaded(stored, change)
        return error, tuple(names)
    else:
        stored.write_bytes(CONTENTS[kind](content, int.from_bytes(content[:8], "little")))
    return RegardError, (str(LARGEST_HEADER + 1),) if kind == "huge header" else ()


@pytest.mark.one_of(4)
@pytest.mark.parametrize("kind", ["missing", "a folder", *CONTENTS, *HEADERS])
def test_a_broken_file_is_one_sentence_and_changes_nothing(stored: Path, kind: str) -> None:
    error, names = damaged(stored, kind)
    model = fresh()
    before = {name: weight.clone() for name, weight in weights(model).items()}
    with refused(error, stored, *names):
        load_weights(stored, model)
    assert all(torch.equal(before[name], weight) for name, weight in weights(model).items())


def test_an_outline_tells_whether_a_file_fits(stored: Path) -> None:
    check_weights(stored, meta_model(section(), 23, 23))
    with refused(RegardError, stored, "262144"):
        check_weights(stored, meta_model(section(d_ff=1 << 18), 23, 23))


def test_some_tensors_are_read_without_the_others(stored: Path) -> None:
    name = "encoder.input.tokens.weight"
    found = some(stored, [name, "absent"])
    assert found.keys() == {name}
    assert torch.equal(found[name], weights(small(dtype=torch.float32))[name])
    stored.write_bytes(stored.read_bytes()[:100])
    with refused(RegardError, "model.safetensors") as caught:
        some(stored, [name])
    assert caught.value.where == str(stored)
