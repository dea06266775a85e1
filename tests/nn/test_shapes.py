"""Every letter that a name of nn and models ends in is in the key."""

import re
from pathlib import Path

import regard.nn
from regard.nn import DIMENSIONS
from shape_watcher import dimensions

SOURCE = Path(regard.nn.__file__).parents[1]
NAME = re.compile(r"\b[a-z_]+_[A-Z][A-Z0-9]*\b")


def test_every_letter_is_in_the_key() -> None:
    found = {}
    for file in [*SOURCE.glob("nn/**/*.py"), *SOURCE.glob("models/**/*.py")]:
        for name in NAME.findall(file.read_text(encoding="utf-8")):
            for dimension in dimensions(name):
                found.setdefault(dimension[0], f"{file.name}: {name}")
    assert found.keys() >= set("TSBDHKUFVN")
    assert {letter: where for letter, where in found.items() if letter not in DIMENSIONS} == {}


def test_the_plan_of_the_house_has_the_same_letters() -> None:
    plan = (Path(__file__).parents[2] / "ARCHITECTURE.md").read_text(encoding="utf-8")
    names = plan.split("## Names")[1].split("## ")[0]
    assert set(re.findall("`([A-Z])`", names)) == set(DIMENSIONS)
