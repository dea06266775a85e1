"""The tokens around texts: what is saved is loaded, and a damaged file ends in a sentence."""

from pathlib import Path

import pytest

from regard.system.errors import RegardError
from regard.text.language_tokens import FRAME, PLAIN, TextFrame, read_frame
from tests.refusals import refused


def test_what_is_saved_is_loaded(tmp_path: Path) -> None:
    assert read_frame(tmp_path) == PLAIN
    held = TextFrame((1, 3), False, (7,))
    (tmp_path / FRAME).write_bytes(held.content)
    assert read_frame(tmp_path) == held


@pytest.mark.parametrize(
    "content",
    [
        '{"format": 1}',
        '{"format": 1, "before": 1, "ended": true, "prefix": []}',
        '{"format": 1, "before": [-1], "ended": true, "prefix": []}',
        '{"format": 1, "before": [], "ended": 1, "prefix": []}',
        '{"format": 1, "before": [], "ended": true, "prefix": ["a"]}',
        '{"format": 10000, "before": [], "ended": true, "prefix": []}',
    ],
)
def test_a_damaged_file_ends_in_a_sentence(content: str, tmp_path: Path) -> None:
    (tmp_path / FRAME).write_text(content)
    with refused(RegardError, FRAME):
        read_frame(tmp_path)
