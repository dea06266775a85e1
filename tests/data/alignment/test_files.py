"""Files of word links beside those of pairs: what they may hold, and which words of a tokenizer they link."""

from pathlib import Path

import numpy as np
import pytest

from regard.config import recipe_from
from regard.data.alignment.files import check_links, open_links, read_links
from regard.data.alignment.hmm import LONGEST
from regard.data.checks.pairs import check_pairs
from regard.data.corpora.scan import DataScan
from regard.data.prepare.encoders import PairEncoder
from regard.data.prepare.split import TRAIN, VALIDATION, SplitCorpora
from regard.system.errors import RegardError, UsageError
from regard.text.tokenizers.vocabulary import learn_vocabularies
from tests.data.prepare.preparing import written
from tests.refusals import refused


@pytest.mark.parametrize(
    ("text", "line", "holds"),
    [
        ("0-0\n", "", ("1 line", "2")),
        ("0-0\n\n1-1\n", "", ("3 lines", "2")),
        ("0-0\n0-0 x\n", ":2", ("'x'",)),
        ("0-0 3-0\n\n", ":1", ("source word 3", "3 words")),
        ("\n0-2\n", ":2", ("target word 2", "2 words")),
    ],
)
def test_a_line_that_does_not_fit_is_named(tmp_path: Path, text: str, line: str, holds: tuple[str, ...]) -> None:
    corpus = written(tmp_path, "train", ["a b c", "d"], ["A B", "D E"])
    path = tmp_path / "links"
    path.write_text(text)
    with refused(RegardError, f"{path}{line}", *holds):
        check_links(corpus, path)
    report = check_pairs([corpus], links=[path])
    [finding] = [one for one in report.findings if one.kind in ("unreadable", "misaligned")]
    assert (report.usable, finding.examples[0][:2]) == (False, (str(path), int(line[1:] or 0)))
    path.write_text("0-0 2-1\n0?1 0-0\n")
    check_links(corpus, path)


def test_files_go_together(tmp_path: Path) -> None:
    path = tmp_path / "links"
    path.touch()
    assert open_links([path], [path], []) == [path]
    assert open_links([], [path], [path]) == []
    for files, source, pairs in (([path], [], [path]), ([path], [path] * 2, []), ([path], [path], [path])):
        with refused(UsageError, "alignment"):
            open_links(files, source, pairs)
    with refused(UsageError, tmp_path / "none"):
        open_links([tmp_path / "none"], [path], [])


def test_words_of_the_tokenizer_get_the_links_of_the_words_that_they_stand_in(tmp_path: Path) -> None:
    sources = ["The well-known dog, she says.", "", "So so so", "a " * (LONGEST + 1), "Well ... yes", "Held out"]
    targets = ["Der bekannte Hund, sagt sie.", "x", "So", "b", "Nun ... ja", "Weg"]
    written(tmp_path, "train", sources, targets)
    corpus = written(tmp_path, "train", sources, targets)
    (tmp_path / "links").write_text("0-0 1-1 2-2 3-4 4-3\n\n0-0 2-0\n0-0\n0-0 1-1 2-2\n0-0\n")
    recipe = recipe_from({"data": {"max_tokens": 2 * LONGEST}})
    encoder = PairEncoder(learn_vocabularies(zip(sources, targets, strict=True), 300), recipe)
    split = np.where(np.arange(6) == 5, VALIDATION, TRAIN).astype(np.int8)
    examples = SplitCorpora(DataScan.of([corpus]), lambda: split)
    found = list(read_links(examples, [tmp_path / "links"], encoder))
    # The well - known dog , she says .     Der bekannte Hund , sagt sie .
    assert found == [
        {(0, 0), (1, 1), (3, 1), (4, 2), (6, 5), (7, 4)},
        {(0, 0), (2, 0)},
        frozenset(),
        {(0, 0), (1, 1), (2, 2)},
    ]
