"""Windows through a model: every answer at its place, whatever was read together; options laid over a recipe's."""

import numpy as np
import pytest
import torch

from regard.models import inputs
from regard.models.inputs import Tokens
from regard.system.errors import UsageError
from regard.tasks.text import task
from regard.tasks.text.task import decode_with_offsets, decode_with_symbols, forward_batches, sentinel_gaps
from regard.text.tokenizers.tokenizer import Tokenizer, learn
from tests.refusals import refused


def sums(tokens: Tokens) -> torch.Tensor:
    """A row a sequence: its length and the sum of its ids."""
    rows = tokens.ids_T.split(tokens.sequences.lengths_B[: tokens.sequences.count].tolist())
    return torch.stack([torch.stack([torch.tensor(len(row)), row.sum()]) for row in rows])


def doubles(tokens: Tokens) -> torch.Tensor:
    """A row a token: twice its id, and its place in its sequence."""
    return torch.stack([2 * tokens.ids_T, tokens.sequences.positions_T], 1)


def windows(lengths: list[int]) -> list[np.ndarray]:
    draw = np.random.default_rng(3)
    return [draw.integers(0, 50, length) for length in lengths]


LENGTHS = [[3, 1, 7, 7, 2, 30, 1], [5], [], [1] * 40]


@pytest.mark.parametrize("room", [1, 8, 8192])
@pytest.mark.parametrize("lengths", LENGTHS)
def test_each_window_and_each_token_gets_its_row(lengths: list[int], room: int) -> None:
    given = windows(lengths)
    found = forward_batches(sums, given, inputs.tokens, each=False, room=room)
    assert [row.tolist() for row in found] == [[len(one), one.sum()] for one in given]
    found = forward_batches(doubles, given, inputs.tokens, each=True, room=room)
    for rows, one in zip(found, given, strict=True):
        assert rows.tolist() == [[2 * id, place] for place, id in enumerate(one.tolist())]


def test_no_more_tokens_than_there_is_room_are_read_at_once() -> None:
    seen: list[int] = []

    def counted(tokens: Tokens) -> torch.Tensor:
        seen.append(len(tokens.ids_T))
        return sums(tokens)

    forward_batches(counted, windows([4, 9, 2, 5, 5, 20, 1]), inputs.tokens, each=False, room=10)
    assert sum(seen) == 46
    assert [count for count in seen if count > 10] == [20]  # one alone that is longer


def test_answers_are_full_precision_numbers_without_a_gradient() -> None:
    class Model(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.weight = torch.nn.Parameter(torch.ones(1, dtype=torch.bfloat16))

        def forward(self, tokens: Tokens) -> torch.Tensor:
            assert torch.is_inference_mode_enabled()
            return sums(tokens) * self.weight

    found = forward_batches(Model(), windows([2, 3]), inputs.tokens, each=False)
    assert [row.dtype for row in found] == [np.float32] * 2


def test_a_text_has_the_mean_of_its_windows() -> None:
    rows, counts = np.random.default_rng(2).normal(size=(7, 3)).astype(np.float32), np.array([1, 4, 2])
    found = task.mean_over_windows(rows, counts)
    expected = [rows[:1].astype(float).mean(0), rows[1:5].astype(float).mean(0), rows[5:].astype(float).mean(0)]
    np.testing.assert_allclose(found, expected, rtol=1e-12)
    np.testing.assert_array_equal(found[0], rows[0])
    assert task.mean_over_windows(np.zeros((0, 3), np.float32), np.zeros(0, np.int64)).shape == (0, 3)


def test_options_that_are_given_count() -> None:
    assert task.sampling_values({"top_p": 0.9, "temperature": 0.0, "top_k": None}, "x") == {
        "top_p": 0.9,
        "temperature": 0,
    }
    with refused(UsageError, "heat", "sample", "temperature"):
        task.sampling_values({"heat": 1.0}, "sample")
    with refused(UsageError, "top_p"):
        task.sampling_values({"top_p": 2.0}, "sample")


NAMES = ("<extra_0>", "<extra_1>", "<extra_2>")


def tokenizer(**more: str) -> Tokenizer:
    texts = ["the old cat sleeps on the green mat and the dog sees the cat"] * 3
    return learn(texts, 300, "nfc", ("[CLS]", "[MASK]", *NAMES), **more)


def test_a_gap_is_a_sentinel_by_its_name() -> None:
    known = tokenizer()
    ids = dict(zip(NAMES, known.sentinels, strict=True))
    for text, named in {
        "the <extra_0> sleeps <extra_1>": NAMES[:2],
        "<extra_1> <extra_0> <extra_1>": ("<extra_1>", "<extra_0>", "<extra_1>"),
        "<extra_2>": NAMES[2:],
        "no gap, [MASK] is none, nor <extra_7>": (),
        "caf\u00e9 <extra_0>": NAMES[:1],
    }.items():
        found = sentinel_gaps(known).parse(text.replace("\u00e9", "e\u0301"))  # the tokenizer's own form comes back
        assert tuple(found.ids[place] for place in found.gaps) == tuple(ids[name] for name in named)
        assert found.text == text
        (batched,) = sentinel_gaps(known).ids_batch([text])
        assert batched.tolist() == found.ids


def test_a_vocabulary_without_sentinels_has_no_gaps() -> None:
    plain = learn(["the cat"] * 3, 300)
    found = sentinel_gaps(plain).parse("the <extra_0>")
    assert (found.gaps, found.ids) == ((), plain.ids_batch(["the <extra_0>"])[0].tolist())
    assert sentinel_gaps(plain).ids_batch(["the <extra_0>"])[0].tolist() == found.ids


@pytest.mark.parametrize("units", ["pieces", "characters"])
def test_pieces_and_their_characters_are_those_of_the_text_around(units: str) -> None:
    known = tokenizer(units=units)
    found = sentinel_gaps(known).parse("the cat <extra_0> on the <extra_1>. The end")
    texts = [found.text[start:end] for _, start, end in found.read]
    assert found.text == "the cat <extra_0> on the <extra_1>. The end"
    space = " " if units == "characters" else ""  # before a gap; else it belongs to the gap
    assert "".join(texts) == f"the cat{space} on the{space}. The end"
    for place, (id, start, end) in enumerate(found.read):
        assert (start == end) == (place in found.gaps)
        assert place in found.gaps or known.decode([id]) == found.text[start:end]
    begun = [found.read[place][1] for place in found.gaps]
    assert [found.text[start:].startswith(name) for start, name in zip(begun, NAMES, strict=False)] == [True, True]


def test_what_was_written_is_spelled_with_its_symbols() -> None:
    known = tokenizer()
    ids = sentinel_gaps(known).parse("<extra_0> old cat<extra_1> na\u00efve <extra_0_> the").ids
    text, read = decode_with_offsets(known, [*ids, known.sentinels[0]], known.sentinels)
    assert text == "<extra_0> old cat <extra_1> na\u00efve <extra_0_> the <extra_0>"
    assert [id for id, _, _ in read] == [*ids, known.sentinels[0]]
    pieces = [text[start:end] for id, start, end in read if id not in known.sentinels]
    assert "".join(pieces) == " old cat na\u00efve <extra_0_> the"
    assert all(start == end for id, start, end in read if id in known.sentinels)


def test_named_symbols_are_shown_and_others_are_not() -> None:
    tokenizer = learn(["the cat sat on the mat"] * 3, 300, symbols=("[CLS]", "[MASK]", "<extra_0>"))
    the, sat = (tokenizer.ids_batch([text])[0].tolist() for text in ("the", " sat"))
    begin, mask, extra = tokenizer.begin[0], tokenizer.mask, tokenizer.sentinels[0]
    ids = [begin, *the, mask, *sat, extra, tokenizer.end]
    assert decode_with_symbols(tokenizer, ids, {mask}) == "the [MASK] sat"
    assert decode_with_symbols(tokenizer, ids, {mask, extra}) == "the [MASK] sat <extra_0>"
    assert decode_with_symbols(tokenizer, [mask, mask, *sat], {mask}) == "[MASK] [MASK] sat"
    assert decode_with_symbols(tokenizer, ids, set()) == "the sat"
    assert decode_with_symbols(tokenizer, [], {mask}) == ""
