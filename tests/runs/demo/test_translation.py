"""The demonstration writes its corpus, over nothing else, and goes its whole way on a small one."""

import json

from pydantic import TypeAdapter

import regard
from regard.cli import main
from regard.runs.demo import translation, without
from regard.runs.demo.grammar import corpus
from regard.runs.demo.grammar.lexicon import Example, read_entries
from regard.runs.demo.translation import write
from regard.system.errors import RegardError, Stopped
from tests.refusals import refused


def test_the_corpus_is_written_once_and_over_nothing(tmp_path) -> None:
    made = corpus(40, 2, 2, seed=1)
    files = write(made, tmp_path / "corpus")
    assert files["source"].read_text().splitlines() == [pair.source for pair in made.train]
    assert write(made, tmp_path / "corpus") == files
    files["target"].write_text("a thesis\n")
    with refused(RegardError, "train.de"):
        write(made, tmp_path / "corpus")
    assert files["target"].read_text() == "a thesis\n"


def test_the_demonstration_runs_from_nothing_to_a_picture(tmp_path, monkeypatch, capsys) -> None:
    for name, value in (("TRAIN", 300), ("VALID", 12), ("TEST", 12)):
        monkeypatch.setattr(translation, name, value)
    small = {"encoder_layers": 2, "decoder_layers": 1, "d_model": 16, "d_ff": 32, "heads": 2}
    monkeypatch.setitem(translation.RECIPE, "model", small)
    monkeypatch.setattr("regard.training.update._NORMS_EVERY", 2)
    monkeypatch.setitem(translation.RECIPE, "decoding", {"max_extra": 3})
    words = ["demo", "--output", str(tmp_path / "demo"), "--threads", "1", "--steps", "3"]
    assert main(words) == 0
    shown = capsys.readouterr().out
    rows = ("this model", "the nearest training sentence", "the commonest pronoun (training)", "→")
    assert [row for row in rows if row not in shown] == []
    assert "layer 1 head" in shown.split("the German pronoun")[1]
    assert main([*words, "--json"]) == 0  # finished: said at once, scored again
    found = json.loads(capsys.readouterr().out)
    assert main([*words[:-1], "4"]) == 0  # more steps than it has made
    assert (found["train"], found["test"], found["simple"]["total"]) == (300, 12, 300)
    learned = {*(tmp_path / "demo" / "corpus" / "train.en").read_text().splitlines()}
    assert found["simple_seen"]["total"] == sum(one.english in learned for one in read_entries(Example))
    for looked, layers in ((found["encoder"], 2), (found["cross"], 1)):
        assert 1 <= looked["layer"] <= layers
        assert 0 <= looked["test"]["antecedent"] <= 1
    assert regard.load(tmp_path / "demo" / "model").recipe.text.target_language == "de"
    assert main([*words[:-1], "4", "--without", "scale"]) == 0
    shown = capsys.readouterr().out
    rows = ("this model", "without scale", "pronouns right", "norm of the gradient", "encoder 2", "→")
    assert [row for row in rows if row not in shown] == []
    assert main([*words[:-1], "4", "--without", "positions", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert {name: one["steps"] for name, one in found["models"].items()} == {"whole": 4, "positions": 4}
    kept = without.read(tmp_path / "demo" / without.NAME)
    assert kept
    assert [*kept.models] == ["whole", "scale", "positions"]
    assert kept.models["positions"] == TypeAdapter(without.Measured).validate_python(found["models"]["positions"])
    (tmp_path / "demo" / without.NAME).write_text("{}")
    assert main([*words[:-1], "4", "--without", "scale"]) == 1
    assert without.NAME in capsys.readouterr().err


def test_a_demonstration_stopped_behind_its_training_says_so() -> None:
    made = corpus(300, 2, 2, seed=1)
    with refused(Stopped):
        translation.evaluate_demonstration(made, None, should_stop=lambda: True)
