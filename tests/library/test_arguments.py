"""Wrong arguments are refused by their names, and errors speak of arguments instead of options."""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from inspect import signature
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pytest
import torch

import regard
from regard.data.corpora.labelled import open_labelled
from regard.library.arguments import checked, speak_python
from regard.runs.train import train
from regard.system.errors import RegardError, UsageError
from tests.library.conftest import IMAGE
from tests.refusals import refused
from tests.tasks.small_tasks import SOURCE, TARGET

Model = Callable[[str], Any]


@checked
def _several(
    texts: str | list[str] = "",
    number: int = 0,
    share: float = 0.5,
    flag: bool = False,
    word: Literal["a", "b"] = "a",
    heads: Sequence[tuple[str, int]] = (),
    pairs: Iterable[Any] = (),
    values: Mapping[str, Any] | None = None,
    run: Callable[[], object] | None = None,
    folder: Path | str = "",
    image: np.ndarray | None = None,
    **more: Any,
) -> dict[str, Any]:
    return {name: value for name, value in locals().items() if name != "more"} | more


@pytest.mark.parametrize(
    "given",
    [
        {"texts": "a"},
        {"texts": ["a", "b"]},
        {"texts": ("a", "b")},
        {"number": np.int64(3)},
        {"share": 1},
        {"share": np.float32(1)},
        {"word": "c"},
        {"heads": [("cross", 1), ["cross", 2]]},
        {"pairs": (one for one in "ab")},
        {"pairs": torch.utils.data.DataLoader([1, 2])},
        {"values": {"a": 1}},
        {"run": print},
        {"folder": Path(".")},
        {"image": IMAGE},
        {"other": 5},
    ],
)
def test_what_fits_is_passed_on(given: dict[str, Any]) -> None:
    found = _several(**given)
    assert all(found[name] is value for name, value in given.items())


@pytest.mark.parametrize(
    ("given", "where", "held"),
    [
        ({"texts": 5}, "texts", ("a text or a list of texts", "int")),
        ({"texts": ["a", None]}, "texts[1]", ("a text", "None")),
        ({"number": "5"}, "number", ("a whole number", "str")),
        ({"number": True}, "number", ("bool",)),
        ({"share": "half"}, "share", ("a number",)),
        ({"flag": 1}, "flag", ("True or False",)),
        ({"word": 3}, "word", ("a text",)),
        ({"heads": ("cross", 1)}, "heads[0]", ("2 values (a text, a whole number)", "str")),
        ({"heads": [("cross",)]}, "heads[0]", ("2 values (a text, a whole number)", "('cross',) (tuple)")),
        ({"heads": [("cross", "1")]}, "heads[0]", ("a whole number",)),
        ({"pairs": "file"}, "pairs", ("a list",)),
        ({"values": []}, "values", ("a dictionary",)),
        ({"run": 3}, "run", ("a function",)),
        ({"folder": None}, "folder", ("a path",)),
        ({"image": [1]}, "image", ("an array", "list")),
    ],
)
def test_what_does_not_fit_is_refused(given: dict[str, Any], where: str, held: tuple[str, ...]) -> None:
    with refused(UsageError, where, *held):
        _several(**given)


def test_missing_and_unknown_arguments_are_named(model: Model) -> None:
    with refused(UsageError, "fit()", "batches"):
        regard.fit(torch.nn.Linear(1, 1))
    with refused(UsageError, "model", "None"):
        regard.fit(None)
    with refused(UsageError, "attribute()", "words"):
        model("translator").attribute(SOURCE, words="a")


CALLS: list[tuple[str, str, Callable[[Any], object]]] = [
    ("translator", "text", lambda m: m.translate(5)),
    ("translator", "text[0]", lambda m: m.translate([None])),
    ("translator", "sources", lambda m: m.evaluate("file", "file")),
    ("translator", "text", lambda m: m.attention(None)),
    ("translator", "target", lambda m: m.attribute(SOURCE, target=3)),
    ("translator", "word", lambda m: m.attribute(SOURCE, TARGET, word=2.5)),
    ("translator", "layer", lambda m: m.attention(SOURCE, TARGET).plot(layer="x")),
    ("translator", "token", lambda m: m.attention(SOURCE, TARGET).plot(token="absent")),
    ("translator", "kind", lambda m: m.attention(SOURCE, TARGET).of(3)),
    ("translator", "layer", lambda m: m.attention(SOURCE, TARGET, "encoder").rollout("last")),
    ("translator", "path", lambda m: m.attention(SOURCE, TARGET).plot(layer=1, head=1).save(None)),
    ("translator", "heads[0]", lambda m: m.without(heads=("cross", 1, 1))),
    ("translator", "targets", lambda m: m.heads([SOURCE], TARGET)),
    ("classifier", "corpus", lambda m: m.evaluate("file")),
    ("classifier", "threshold", lambda m: m.classify(SOURCE, threshold=50)),
    ("classifier", "threshold", lambda m: m.classify(SOURCE, "0.5")),
    ("pairs", "text", lambda m: m.classify(7)),
    ("viewer", "image", lambda m: m.classify(torch.zeros(6, 4))),
    ("classifier", "text", lambda m: m.classify(np.array(3.0))),
    ("tagger", "texts", lambda m: m.tag_words("a b")),
    ("speaker", "max_tokens", lambda m: m.generate("The", max_tokens="5")),
    ("speaker", "stride", lambda m: m.perplexity("The", stride=2.5)),
    ("filler", "k", lambda m: m.fill("[MASK]", k="5")),
    ("spanner", "beam", lambda m: m.ask("<extra_0>", beam=-1)),
    ("encoder", "pool", lambda m: m.encode(SOURCE, pool=3)),
    ("encoder", "names", lambda m: regard.probe.capture(m, 3).__enter__()),
    ("encoder", "function", lambda m: regard.probe.intervene(m, "*", 3).__enter__()),
    ("encoder", "port", lambda m: regard.explore(m, port="8017")),
    ("encoder", "port", lambda m: regard.explore(m, port=99999)),
    ("encoder", "model", lambda _: regard.explore("model")),
    ("encoder", "tokens", lambda _: regard.explore(torch.nn.Linear(1, 1), run=print, tokens=5)),
    ("encoder", "model", lambda _: regard.explore(torch.nn.Linear(1, 1), run=print, tokens="letters")),
    ("encoder", "model", lambda _: regard.probe.points(None)),
    ("encoder", "folder", lambda _: regard.load(None)),
    ("encoder", "folder", lambda _: regard.Translator.load(5)),
    ("encoder", "source", lambda _: regard.train(5, 6)),
]


@pytest.mark.parametrize(("name", "where", "call"), CALLS)
def test_public_calls(name: str, where: str, call: Callable[[Any], object], model: Model) -> None:
    with refused(UsageError, where):
        call(model(name))


def test_a_device_is_named_by_its_argument(folder: Callable[[str], Path]) -> None:
    with refused(UsageError, "device"):
        regard.load(folder("classifier"), device="abacus")


def test_a_corpus_is_evaluated(model: Model, tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("text,label\nThe animal,good\nThe street,bad\n")
    assert model("classifier").evaluate(open_labelled(tmp_path / "a.csv")).to_dict()


@pytest.mark.parametrize(
    ("wishes", "where", "held"),
    [
        ({}, None, ("source=FILE",)),
        ({"source": "a.en", "target": "a.de", "minutes": -1}, "minutes", ("-1",)),
        ({"source": "a.en", "target": "a.de", "valid": "b"}, "valid", ("source=",)),
        ({"source": "a.en", "target": "a.de", "start_from": "m"}, "start_from", ("output=", "train=")),
        ({"task": "tagging", "train": "a.tsv", "source": "b"}, "source", ("train=",)),
        ({"source": "a.en", "target": "a.de", "settings": ["model.x=1"]}, "settings", ()),
        ({"source": "a.en", "target": "a.de", "preset": "tinny"}, "preset", ("tiny",)),
        ({"source": "a.en", "target": "a.de", "minutes": 1.0, "steps": 5}, "steps, minutes", ()),
        ({"source": "a.en", "target": "a.de", "licence": "a\nb"}, "licence", ()),
        ({"task": "tagging", "train": "a.csv", "columns": "1,"}, "columns", ()),
    ],
)
def test_training_speaks_of_arguments(
    wishes: dict[str, Any], where: str | None, held: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("a.en", "a.de", "a.tsv", "a.csv"):
        Path(name).write_text("a\tb\n")
    with refused(UsageError, where, *held) as caught:
        regard.train(output="out", quiet=True, **wishes)
    assert not re.search("--[a-z]", str(caught.value))


@pytest.mark.parametrize(
    ("said", "spoken"),
    [
        ("give --source FILE and --target FILE", "give source=FILE and target=FILE"),
        ("name them by --columns, as before", "name them by columns=, as before"),
        ('say --columns "label text" or --columns 1,2', 'say columns="label text" or columns="1,2"'),
        ("again with --resume never (as told)", 'again with resume="never" (as told)'),
        ("train by --despite-check.", "train by despite_check=True."),
        ("write --set model.d_model=5", 'write settings=["model.d_model=5"]'),
        ("with --allow-mismatch training.rate", 'with allow_mismatch=["training.rate"]'),
        ("--from keeps those", "start_from= keeps those"),
        ("regard attend --input FILE --table", "regard attend --input FILE --table"),
    ],
)
def test_options_become_arguments(said: str, spoken: str) -> None:
    error = RegardError(said, "--from folder")
    speak_python(error, signature(train))
    assert (str(error), error.args) == (f"start_from folder: {spoken}", (spoken,))
