"""A processor is told by its name, its family and its model."""

from pathlib import Path

import pytest

from regard.system import processor

EPYC = "processor\t: 0\nvendor_id\t: AuthenticAMD\ncpu family\t: 25\nmodel\t\t: 17\nmodel name\t: AMD EPYC\n"


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        (EPYC, "AMD EPYC (family 25, model 17)"),
        (EPYC + EPYC.replace("17", "18"), "AMD EPYC (family 25, model 17)"),
        ("processor\t: 0\nmodel name\t: Cortex-A76\n", "Cortex-A76"),
    ],
)
def test_names_alone_are_cut_short(tmp_path: Path, text: str, kind: str) -> None:
    file = tmp_path / "cpuinfo"
    file.write_text(text)
    assert processor.kind(file) == kind
    assert kind.startswith(processor.name(file))


def test_where_the_system_says_nothing(tmp_path: Path) -> None:
    assert processor.kind(tmp_path / "none") == processor.name(tmp_path / "none") != ""
