"""Errors name arguments; Python and the command line spell them differently."""

import pickle

import pytest

from regard.system.errors import Option, UsageError

SPELLED = [
    (Option("columns"), "columns", "columns=", "--columns"),
    (Option("source", "FILE"), "source FILE", "source=FILE", "--source FILE"),
    (Option("columns", "label text"), "columns label text", "columns='label text'", "--columns 'label text'"),
    (Option("start_from", "m"), "start_from m", "start_from='m'", "--from m"),
    (Option("settings", ["seed=1"]), "settings ['seed=1']", "settings=['seed=1']", "--set seed=1"),
    (Option("despite_check", True), "despite_check True", "despite_check=True", "--despite-check"),
    (Option("minutes", 5), "minutes 5", "minutes=5", "--minutes 5"),
]


@pytest.mark.parametrize(("option", "place", "argument", "spelled"), SPELLED)
def test_each_front_spells_an_option_its_own_way(option, place, argument, spelled, monkeypatch) -> None:
    error = UsageError(f"say {option}", option)
    assert (str(error), error.where) == (f"{place}: say {argument}", place)
    assert str(pickle.loads(pickle.dumps(error))) == str(error)
    monkeypatch.setattr(Option, "dashes", True)
    assert str(UsageError(f"say {option}", option)) == f"{spelled}: say {spelled}"
