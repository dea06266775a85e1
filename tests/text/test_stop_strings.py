import pytest
from hypothesis import given
from hypothesis import strategies as st

from regard.system.errors import UsageError
from regard.text.stop_strings import Decoder, StopStrings
from regard.text.tokenizers.byte_pieces import WindowDecoder
from regard.text.tokenizers.tokenizer import Tokenizer, learn
from tests.refusals import refused

TEXTS = ["The animal didn't cross the street. ", "Straße 東京 😀👩‍👧 ", "a b ab abb abc "] * 3
ANY = st.one_of(st.text(max_size=30), st.text(st.sampled_from(list("abc .東😀")), max_size=30))
STOPS = st.lists(st.text(st.sampled_from(list("abc 東😀")), min_size=1, max_size=4), max_size=3)


@pytest.fixture(scope="module", params=["pieces", "characters"])
def one(request: pytest.FixtureRequest) -> Tokenizer:
    return learn(TEXTS, 330, units=request.param)


class Windowed:
    """The same tokenizer, read through a window."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        self.decode = tokenizer.decode

    def incremental(self) -> WindowDecoder:
        return WindowDecoder(self.decode)


def first_complete(text: str, stops: list[str]) -> str:
    """Letter by letter: the text before the stop that is the first to be complete."""
    for end in range(1, len(text) + 1):
        found = [end - len(stop) for stop in stops if text[:end].endswith(stop)]
        if found:
            return text[: min(found)]
    return text


@given(st.data())
def test_what_comes_out_is_the_text_of_all(one: Tokenizer, data: st.DataObject) -> None:
    """Of any ids, symbols and broken bytes too; and at each moment it is all that is certain."""
    ids = data.draw(st.lists(st.integers(0, one.size), max_size=40))
    decoder, out = Decoder(one), ""
    for count, id in enumerate(ids, 1):
        out += decoder.feed(id)
        whole = one.decode(ids[:count])
        assert whole.startswith(out)
        assert whole[len(out) :] in ("", "\ufffd", "\ufffd\ufffd")  # two, where two bytes might begin a surrogate
    assert out + decoder.finish() == one.decode(ids)


@given(ANY)
def test_a_character_comes_with_its_last_byte(one: Tokenizer, text: str) -> None:
    decoder, normal = Decoder(one), one.normalise(text)
    encoding = one.encode(text)
    for place, (id, (_, end)) in enumerate(zip(encoding.ids, encoding.offsets, strict=True)):
        split = place + 1 < len(encoding.ids) and encoding.offsets[place + 1][0] < end
        shown = decoder.feed(id)
        assert normal.startswith(shown)
        normal = normal[len(shown) :]
        assert split or len(encoding.text) - len(normal) == end
    assert (decoder.finish(), normal) == ("", "")


@given(ANY.map(lambda text: text * 5))
def test_a_window_gives_the_same(one: Tokenizer, text: str) -> None:
    ids = one.encode(text).ids
    for tokenizer in (one, Windowed(one)):
        decoder = Decoder(tokenizer)
        assert "".join(map(decoder.feed, ids)) + decoder.finish() == one.normalise(text)


@given(ANY, STOPS)
def test_nothing_of_a_stop_comes_out(one: Tokenizer, text: str, stops: list[str]) -> None:
    stop = StopStrings(stops, one)
    decoder, ids, out, already = Decoder(one, stop), one.encode(text).ids, "", False
    for count, id in enumerate(ids, 1):
        out += decoder.feed(id)
        assert decoder.stopped == any(s in one.decode(ids[:count]) for s in stops)
        if not already:  # it is asked until it says so
            assert stop(ids[:count]) == decoder.stopped
        already = decoder.stopped
    wanted = first_complete(one.normalise(text), stops)
    assert out + decoder.finish() == wanted == stop.cut(one.normalise(text))


def test_a_stop_that_an_unfinished_character_held_back_ends_the_text(one: Tokenizer) -> None:
    """A window gives nothing while its last character is unfinished, even if a stop stands before that."""
    pieces = [b"x", b"ab\xc3"]

    class Pieces:
        @staticmethod
        def incremental() -> WindowDecoder:
            return WindowDecoder(lambda ids: b"".join(pieces[id] for id in ids).decode(errors="replace"))

    decoder = Decoder(Pieces, StopStrings(["b"], one))
    assert [decoder.feed(0), decoder.feed(1), decoder.finish()] == ["x", "", "a"]
    assert decoder.stopped


def test_only_what_may_become_a_stop_is_kept_back_and_an_empty_one_is_refused(one: Tokenizer) -> None:
    decoder = Decoder(one, StopStrings(["abc"], one))
    letters = [one.encode(letter).ids[0] for letter in "ababbabc"]
    # "ab" may begin "abc" until another letter follows it.
    assert [decoder.feed(letter) for letter in letters] == ["", "", "ab", "", "abb", "", "", ""]
    assert decoder.stopped
    assert decoder.feed(letters[0]) == decoder.finish() == ""
    with refused(UsageError, "stop"):
        StopStrings(["x", ""], one)
