"""Texts that every tokenizer reads as its own library does."""

import gzip
import json
from pathlib import Path

import pytest


@pytest.fixture(scope="package")
def lines(data_folder: Path) -> list[str]:
    """Twelve scripts, sentences, and strings that break programs."""
    packed = [*sorted(data_folder.glob("udhr/*.gz")), *sorted(data_folder.glob("flores-en-pt/dev.??.gz"))]
    packed += [data_folder / "tatoeba/val.en-de.tsv.gz", data_folder / "robust-strings/GraphemeBreakTest.txt.gz"]
    found = [line for path in packed for line in gzip.decompress(path.read_bytes()).decode().split("\n")]
    strange = (data_folder / "robust-strings/naughty.jsonl").read_text().splitlines()
    found += [str(json.loads(line)) for line in strange]
    found += (data_folder / "robust-strings/utf8-stress.bin").read_bytes().decode("utf-8", "replace").split("\n")
    return found
