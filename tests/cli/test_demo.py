"""``regard demo``: the table shows the measured scores only."""

import json
import sys
from dataclasses import replace

import pytest

from regard.cli.demo import pronoun_of, table
from regard.models.ablation import Head
from regard.runs.demo.ablation_study import AblationStudy, HeadAblation, HeadFinding, PronounAttention
from regard.runs.demo.grammar.scores import Accuracy, Shares
from regard.runs.demo.translation import Demonstration, DemoScores

LOOKER = Head("cross", 1, 4)
STUDY = AblationStudy(
    sentences=300,
    right=297,
    commonest=110,
    heads=(HeadFinding(LOOKER, Shares(0.61, 0.05, 0.3, 0.2), 240),),
    steps=(HeadAblation((LOOKER,), 120),),
    smallest=HeadAblation((LOOKER,), 120),
    without_lookers=HeadAblation((LOOKER,), 120),
)
FOUND = Demonstration(
    train=60_000,
    test=1_000,
    model=DemoScores(0.983, 99.21, "signature", Accuracy(412, 416)),
    simple=Accuracy(297, 300),
    simple_seen=Accuracy(32, 32),
    nearest=DemoScores(0.012, 31.4, "signature", Accuracy(150, 416)),
    majority=Accuracy(140, 416),
    encoder=PronounAttention(2, 3, Shares(0.8, 0.1, 0.4, 0.1), Shares(0.84, 0.03, 0.4, 0.12)),
    cross=PronounAttention(1, 4, Shares(0.6, 0.1, 0.3, 0.2, 0.2), Shares(0.61, 0.05, 0.3, 0.2, 0.2)),
    study=STUDY,
    example="The animal didn't cross the street because it was too tired.",
)


def test_the_table_names_model_and_baselines() -> None:
    text = table(FOUND)
    rows = {line[:32].strip(): line[32:].split() for line in text.splitlines()}
    assert rows["this model"] == ["98.3%", "99.2", "99.0%", "(412", "of", "416)"]
    assert rows["the nearest training sentence"][:2] == ["1.2%", "31.4"]
    assert rows["the commonest pronoun (training)"][0] == "33.7%"
    assert "people type first: 99.0% (297 of 300) exact; of the 32 in the training corpus, 32." in text
    assert "“it”, encoder self-attention" in text
    assert "layer 2 head 3   84% on the antecedent, 3% on the other noun; nouns: 12%" in text
    assert "layer 1 head 4   61% on the antecedent, 5% on the other noun; nouns: 20%" in text
    assert max(map(len, text.splitlines())) <= 140
    assert "none tested" in table(replace(FOUND, majority=Accuracy(0, 0)))
    shares = Shares(0.01, 0.02, 0.01, 0.05, 0.97)  # the German pronoun may look at the English one
    text = table(replace(FOUND, cross=PronounAttention(1, 2, shares, shares)))
    assert "layer 1 head 2   97% on “it”, 1% on the antecedent, 2% on the other noun; nouns: 5%" in text
    assert max(map(len, text.splitlines())) <= 140


def test_the_pronoun_shown_is_the_english_or_the_german_one() -> None:
    english, german = "The dog slept because it was tired", "Der Hund schlief , weil er müde war"
    assert pronoun_of(english.split()) == "it"
    assert pronoun_of(german.split()) == "er"
    assert pronoun_of("Der Hund schlief , weil".split()) is None
    assert FOUND.encoder.valid.margin == pytest.approx(0.7)


@pytest.mark.parametrize("steps", ["0", "-1"])
def test_no_steps_are_refused(regard, tmp_path, steps: str) -> None:
    done = regard("demo", "--steps", steps, "--output", tmp_path / "demo")
    assert done.code == 2
    assert not (tmp_path / "demo").exists()


@pytest.mark.parametrize(
    ("options", "name"),
    [((), "."), ((), "corpus"), ((), "model"), *((("--images",), name) for name in (".", "images", "model", "cnn"))],
    ids=str,
)
def test_a_file_in_the_place_of_a_folder_is_refused_at_once(regard, tmp_path, options, name: str) -> None:
    output = tmp_path / "demo"
    place = output / name
    place.parent.mkdir(exist_ok=True)
    place.write_text("mine")
    done = regard("demo", "--output", output, *options)
    assert (done.code, f"{place}: is a file, and a folder is made there" in done.err) == (2, True)
    assert place.read_text() == "mine"


@pytest.fixture
def demo(regard, monkeypatch):
    """The command, which finds at once what is given."""

    def run(folder, found, *more: str):
        monkeypatch.setattr("regard.runs.demo.translation.demonstrate", lambda *_: found)
        return regard("demo", "--output", folder, *more)

    monkeypatch.setattr(sys.modules[table.__module__], "picture", lambda *_: "a picture\n")
    monkeypatch.setattr("regard.tasks.model_path.weights_sha256", lambda *_: "0" * 64)
    return run


@pytest.mark.parametrize(("folder", "named"), [("demo", "demo"), ("my demo", "'my demo'")])
def test_it_ends_with_the_command_that_opens_the_page(demo, tmp_path, monkeypatch, folder: str, named: str) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / folder).mkdir()
    assert demo(folder, FOUND).out.rstrip().endswith(f"regard explore {named}")
    assert "explore" not in demo(folder, FOUND, "--json").out


def test_a_link_in_the_place_of_the_walk_is_refused(regard, tmp_path) -> None:
    (tmp_path / "mine").write_text("mine")
    (tmp_path / "walk.json").symlink_to(tmp_path / "mine")
    done = regard("demo", "--output", tmp_path)
    assert (done.code, "no plain file" in done.err) == (2, True)
    assert (tmp_path / "mine").read_text() == "mine"


@pytest.mark.parametrize("study", [STUDY, None])
def test_the_study_is_printed_written_and_in_the_json(demo, tmp_path, study) -> None:
    done = demo(tmp_path, replace(FOUND, study=study))
    assert ("297 of 300 right" in done.out) == bool(study)
    assert (tmp_path / "walk.json").exists() == bool(study)
    if study:
        walk = json.loads((tmp_path / "walk.json").read_text(encoding="utf-8"))
        assert walk["study"] == json.loads(json.dumps(study.to_dict()))
        assert walk["weights"] == "0" * 64
    found = json.loads(demo(tmp_path, replace(FOUND, study=study), "--json").out)["study"]
    assert (found and found["right"], found and found["spare"]) == ((297, 0) if study else (None, None))
