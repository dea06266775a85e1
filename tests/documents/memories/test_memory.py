"""Translations that are remembered: the same texts, and the closest of all others."""

from difflib import SequenceMatcher
from pathlib import Path

import numpy as np
import pytest

from regard.data.corpora.corpus import TextPair
from regard.documents.memories.bilingual import WRITERS
from regard.documents.memories.memory import TranslationMemory
from regard.documents.segment import Segment, SegmentTranslation
from regard.documents.translate import SegmentAnswer
from regard.system.errors import RegardError

PO = 'msgid ""\nmsgstr "Content-Type: text/plain; charset=UTF-8\\n"\n\nmsgid "a  b"\nmsgstr "c"\n'


def test_the_same_text_is_found_but_for_white_space(tmp_path: Path) -> None:
    answers = [SegmentAnswer(SegmentTranslation(text)) for text in ("Eins.", "Zwei.", "Eins!")]
    segments = [Segment(0, 1, text) for text in ("One\u0065\u0301.", "Two\n two.", "One\u00e9.")]
    path = tmp_path / "a.tmx"
    path.write_bytes(WRITERS["tmx"](segments, answers, ("en", "de")))
    memory = TranslationMemory.read(path, ("en", "de"))
    assert len(memory) == 2
    assert memory.exact(" One\u00e9. ") == "Eins!"  # the last one
    assert memory.exact("Two two.") == "Zwei."
    assert memory.exact("two two.") is None
    turned = TranslationMemory.read(path, ("de", "en"))
    assert turned.exact("Zwei.") == "Two two."
    with pytest.raises(RegardError, match=r"none of 3 units has both texts.*'de', 'en'$"):
        TranslationMemory.read(path, ("en", "fr"))


def test_other_files_are_read_in_the_direction_that_they_have(tmp_path: Path) -> None:
    for name, text in (("a.po", PO), ("a.tsv", "a b\tc\n")):
        (tmp_path / name).write_text(text)
        assert TranslationMemory.read(tmp_path / name, ("en", "de")).exact("a b") == "c"


def test_close_match_is_the_one_of_a_search_through_all() -> None:
    rng = np.random.default_rng(0)
    words = [f"w{number}" for number in range(60)]
    texts = [" ".join(words[int(60 * one**2)] for one in rng.random(rng.integers(1, 9))) for _ in range(400)]
    memory = TranslationMemory(TextPair(text, text.upper()) for text in texts)
    found = 0
    for text in texts[:100]:
        wanted = [*text.split()[:-1], "other"]
        scores = [SequenceMatcher(None, one.split(), wanted, autojunk=False).ratio() for one in texts]
        match = memory.close(" ".join(wanted), least=0.6)
        if max(scores) < 0.6:
            assert match is None
            continue
        assert match is not None
        assert match.target == match.source.upper()
        assert match.score == pytest.approx(SequenceMatcher(None, match.source.split(), wanted).ratio())
        found += match.score >= max(scores) - 0.05
    assert found > 50


def test_nothing_is_close_to_nothing() -> None:
    assert TranslationMemory([]).close("a") is None
    memory = TranslationMemory([TextPair("a b", "c"), TextPair("", "d"), TextPair("...", "e")])
    assert memory.close("") is None
    assert memory.close("x y") is None
    assert memory.close("A  b.", least=0.5).source == "a b"
