"""Labels take exactly the given number of cells."""

from hypothesis import given
from hypothesis import strategies as st

from regard.explore.pictures.table import fit, upright
from regard.text.terminal_cells import visible, width


@given(st.text(max_size=30), st.integers(1, 20), st.sampled_from("<>^"))
def test_fit_takes_exactly_its_cells(text: str, cells: int, align: str) -> None:
    assert width(fit(visible(text), cells, align)) == cells


def test_upright_reads_downwards_and_stands_on_the_last_line() -> None:
    lines = upright(["it", "animal"], 2, 12)
    assert len(lines) == 6
    assert "".join(line[0] for line in lines) == "    it"
    assert "".join(line[2] for line in lines) == "animal"
    assert len(upright(["because of everything"], 2, 5)) == 5
