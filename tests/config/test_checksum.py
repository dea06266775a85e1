"""A file that ends in its own sha256: every flipped bit and every cut is found, and an old file is read as it is."""

from pathlib import Path

import pytest

from regard.config import checksum
from regard.system.errors import Damaged, RegardError
from tests.refusals import refused

VALUES = {"format": 1, "files": {"a": [1, 2.5, "ü"]}, "sizes": [2000]}
TABLES = {"chosen": {"accumulate": 1, "product": "bf16"}, "training": {"schedule": "cosine"}}
PATH = Path("folder/file")


def harmed(raw: bytes) -> list[bytes]:
    flips = [
        raw[:place] + bytes([raw[place] ^ 1 << bit]) + raw[place + 1 :] for place in range(len(raw)) for bit in range(8)
    ]
    return [*flips, *(raw[:end] for end in range(len(raw))), raw + b" ", raw + raw]


def load_json(raw: bytes) -> dict[str, object]:
    return checksum.load_json(raw, PATH)


def load_toml(raw: bytes) -> dict[str, object]:
    found = checksum.load_toml(raw, PATH)
    return {name: table for name, table in found.items() if isinstance(table, dict)}


@pytest.mark.parametrize(
    ("load", "raw", "right", "nothing"),
    [(load_json, checksum.dump_json(VALUES), VALUES, None), (load_toml, checksum.dump_sealed_toml(TABLES), TABLES, {})],
    ids=["json", "toml"],
)
def test_every_flip_and_cut_is_found(load, raw, right, nothing) -> None:
    assert load(raw) == right
    for changed in harmed(raw):
        try:
            found = load(changed)
        except RegardError:
            continue
        # the key of the sha256 itself is flipped, and all else is right; or a head without a single table is left
        assert {name: found.get(name) for name in right} == right or found == nothing


def test_required_means_that_none_is_no_excuse() -> None:
    raw = checksum.dump_json(VALUES)
    assert checksum.load_json(raw, PATH, required=True) == VALUES
    for changed in harmed(raw):
        with pytest.raises(Damaged):
            checksum.load_json(changed, PATH, required=True)


def test_an_old_file_has_none() -> None:
    assert load_json(b'{"format": 1, "a": 2}') == {"format": 1, "a": 2}
    assert load_toml(b"format = 1\n\n[chosen]\nsteps = 3\n") == {"chosen": {"steps": 3}}


@pytest.mark.parametrize("raw", [b"", b"[]", b"5", b"null", b'{"format": null}', b'{"format": true}', b"[" * 99_999])
def test_what_is_no_object_with_a_format_is_damaged(raw: bytes) -> None:
    with pytest.raises(Damaged):
        load_json(raw)


@pytest.mark.parametrize("number", ["2", "99999999999", "9" * 4000])
def test_a_newer_format_is_refused_with_a_short_sentence(number: str) -> None:
    of_toml = number if len(number) < 19 else "99"  # more than 64 bits are no TOML
    for load, raw in ((load_json, f'{{"format": {number}}}'), (load_toml, f"format = {of_toml}\n")):
        with refused(RegardError, "folder/file") as caught:
            load(raw.encode())
        assert not isinstance(caught.value, Damaged)
        assert len(str(caught.value)) < 150


def test_a_number_too_long_to_read_is_damage() -> None:
    for load, raw in ((load_json, f'{{"format": {"9" * 5000}}}'), (load_toml, f"format = {'9' * 5000}\n")):
        with pytest.raises(Damaged):
            load(raw.encode())
