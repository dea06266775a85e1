"""Display texts of pieces contain no invisible characters."""

from __future__ import annotations

import pytest

from regard.explore.forward.inputs import mark, piece, visible
from regard.text.tokenizers.tokenizer import learn

TEXT = "a cat\n\tand\u200b a dog\x07"


class Raw:
    """A tokenizer that names its pieces as they are, as those of other projects may."""

    def piece(self, id: int) -> str:
        return TEXT[id]


@pytest.mark.parametrize(
    ("given", "shown"),
    [
        ("▁cat", "▁cat"),
        ("für 猫", "für 猫"),
        ("\n", "<0x0A>"),
        ("a\x00b", "a<0x00>b"),
        ("\u200b", "<0x200B>"),
        ("\ud800", "<0xD800>"),
        ("", ""),
    ],
)
def test_what_is_not_seen_is_told_by_its_number(given: str, shown: str) -> None:
    assert visible(given) == shown


def test_pieces_of_any_tokenizer_can_be_seen() -> None:
    raw = Raw()
    shown = [piece(raw, id) for id in range(len(TEXT))]
    assert all(one.isprintable() for one in shown)
    assert [one for one in shown if len(one) > 1] == ["<0x0A>", "<0x09>", "<0x200B>", "<0x07>"]
    assert mark(raw, 5, 3).text == "<0x0A>"
    ours = learn([TEXT] * 3, 300)
    shown = [piece(ours, id) for id in ours.encode(TEXT).ids]
    assert all(one.isprintable() for one in shown)
    wanted = TEXT.replace(" ", "▁")
    for hidden in "\n\t\u200b\x07":
        wanted = wanted.replace(hidden, f"<0x{ord(hidden):02X}>")
    assert "".join(shown) == wanted
