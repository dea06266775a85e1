"""The demonstration writes its corpus, and over nothing else."""

from pathlib import Path

import pytest

from regard.data.grammar import corpus
from regard.errors import RegardError
from regard.tasks.demo import write


def test_the_corpus_is_written_once_and_over_nothing(tmp_path: Path) -> None:
    made = corpus(40, 2, 2, seed=1)
    files = write(made, tmp_path / "corpus")
    assert files["source"].read_text().splitlines() == [pair.source for pair in made.train]
    assert write(made, tmp_path / "corpus") == files
    files["target"].write_text("a thesis\n")
    with pytest.raises(RegardError, match="holds something else"):
        write(made, tmp_path / "corpus")
    assert files["target"].read_text() == "a thesis\n"
