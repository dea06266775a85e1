"""A draft is followed as an output grows: what it offers next, where it is found again, when it is dropped."""

from regard.decoding.draft import CREDIT, FIRST, LOOK, WAIT, Draft

MOST = 1000


def test_what_is_right_is_offered_further_each_time_more() -> None:
    tokens = list(range(100, 160))
    draft, output = Draft(tokens), list[int]()
    for size in (FIRST, 2 * FIRST, 4 * FIRST, 8 * FIRST):
        some = draft.ahead(output, MOST)
        assert some == tokens[len(output) :][:size]
        assert draft.wait(MOST) == MOST
        output += some
    assert draft.ahead(tokens, MOST) == []
    assert Draft(tokens).ahead([], 3) == tokens[:3]
    assert Draft(tokens).ahead([], 0) == []
    assert Draft(tokens).ahead(tokens[:50], MOST) == tokens[50 : 50 + FIRST]


def test_it_is_found_again_behind_another_word() -> None:
    """Exchanged, left out and put in; behind two tokens, or one that is there once."""
    tokens = list(range(100, 140))
    for output, place in (
        ([*tokens[:4], 7, *tokens[5:7]], 7),
        ([*tokens[:4], 7, 8, 9, *tokens[6:8]], 8),
        ([*tokens[:4], *tokens[6:7]], 7),
        ([*tokens[:4], 7, tokens[4]], 5),
    ):
        draft = Draft(tokens)
        draft.ahead([], MOST)
        some = draft.ahead(output, MOST)
        assert some == tokens[place : place + FIRST]
        assert draft.ahead([*output, *some], MOST) == tokens[place + FIRST :][: 2 * FIRST]


def test_a_token_that_is_there_twice_tells_no_place() -> None:
    tokens = [100, 5, 101, 5, 102, 5, 103]
    draft = Draft(tokens)
    assert draft.ahead([9, 5], MOST) == []
    assert draft.ahead([9, 5, 9, 102], MOST) == [5, 103]
    assert Draft(tokens).ahead([9, 9, 101, 5], MOST) == [102, 5, 103]


def test_what_it_costs_is_bounded() -> None:
    """Nothing that it offers is right, and it is never found: fewer and fewer looks, then none."""
    draft, waits, output = Draft(range(100, 140)), list[int](), [9]
    assert draft.ahead([], MOST)
    assert draft.ahead(output, MOST) == []
    while waits[-1:] != [MOST]:
        waits.append(draft.wait(MOST))
        output += [9] * waits[-1]
        assert draft.ahead(output, MOST) == []
    assert waits[:-1] == [WAIT << n for n in range(len(waits) - 1)]
    assert 0 < len(waits) - 1 <= CREDIT // LOOK
    wrong, offers, output = Draft(range(100, 200)), 0, [9]
    for token in range(101, 200, 3):
        output += [token]
        offers += bool(wrong.ahead(output, MOST))
        output += [9]
    assert 0 < offers <= CREDIT


def test_one_that_ended_is_not_looked_at() -> None:
    draft = Draft([100, 101])
    draft.ahead([], MOST)
    assert draft.ahead([100, 101, 102], MOST) == []
    assert draft.wait(MOST) == MOST
    assert Draft([]).ahead([], MOST) == []
