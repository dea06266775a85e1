"""The lexical model against links that were made by hand."""

from pathlib import Path

import pytest

from regard.data.alignment.hmm import WordAligner
from regard.data.alignment.links import Links, alignment_error_rate, read_gold
from regard.tasks.translation.align import words_of
from regard.text.lines import lines

GOLD = Path(__file__).parents[2] / "fixtures" / "alignments" / "multi30k-valid.en-de.tsv"


def gold() -> dict[int, tuple[Links, Links]]:
    """Sure and possible links by line number."""
    rows = [line.split("\t") for line in GOLD.read_text().splitlines() if not line.startswith("#")]
    return {int(number): read_gold(links) for number, links in rows}


def test_a_hundred_sentences_have_sure_and_possible_links() -> None:
    found = list(gold().values())
    assert len(found) == 100
    assert all(sure and sure <= possible for sure, possible in found)


@pytest.mark.long
def test_validation_texts_alone_align_most_words(data_folder: Path) -> None:
    sides = [[words_of(text) for text in lines(data_folder / "multi30k" / f"val.{code}.gz")] for code in ("en", "de")]
    found, wanted = WordAligner(*sides).align(*sides), gold()
    assert alignment_error_rate([found[number - 1] for number in wanted], list(wanted.values())) < 0.12
