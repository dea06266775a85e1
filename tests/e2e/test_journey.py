"""What a person does with two files, one command after the other."""

import hashlib
import json
import re
import tomllib
import xml.etree.ElementTree as ElementTree
from functools import partial
from pathlib import Path
from typing import Any

import regard as regard_package
from regard.system.errors import UsageError
from regard.training.checkpoints import resolved
from tests.refusals import refused

Run = Any
"""The fixture ``regard``: words in; code, out, err."""


def test_the_folder_holds_what_is_promised(trained: Path) -> None:
    model = trained / "model"
    for name in ("recipe.toml", "model.safetensors", "tokenizer.json", "card.md", "training/metrics.jsonl"):
        assert (model / name).is_file(), name
    kinds = {json.loads(line)["kind"] for line in (model / "training" / "metrics.jsonl").read_text().splitlines()}
    assert {"start", "step", "valid", "sample", "save"} <= kinds


def test_a_finished_run_goes_on_to_a_later_last_step(world: Path, regard: Run, train_options: Any) -> None:
    model = world / "model"
    longer = [*train_options(world, model, 9), "--threads", 1]
    assert "resume with --allow-mismatch training.steps" in regard(*longer).sentence
    with (model / "training" / "resolved.toml").open("rb") as file:
        before = tomllib.load(file)
    threads = ["chosen.threads"] if before["chosen"]["threads"] > 1 else []
    changed = ["training.steps", "training.validate_every", *threads]
    done = regard(*longer, *(word for name in changed for word in ("--allow-mismatch", name)))
    assert done.code == 0, done.err
    with (model / "training" / "resolved.toml").open("rb") as file:
        after = tomllib.load(file)
    assert (after["training"]["steps"], after["chosen"]["steps"], after["chosen"]["validate_every"]) == (9, 9, 9)
    assert (model / "training" / "checkpoints" / "step-000009").is_dir()
    assert "9 steps" in (model / "card.md").read_text()
    assert "finished already" in regard(*longer).err


def test_a_line_out_for_each_line_in_and_a_long_one_is_cut(world: Path, regard: Run) -> None:
    given = (
        b"\xef\xbb\xbfthe cat\r\n\n\xff\xfe bad\nthe \xe2\x80\xa8 dog\n</s> <unk>\n" + "日本語 🙂 e\u0301\n".encode()
    )
    done = regard("translate", world / "model", stdin=given)
    assert (done.code, done.out.count("\n"), done.out.split("\n")[1]) == (0, 6, "")
    assert "1 line was not valid UTF-8 and had bytes replaced: 3\n" in done.err
    done = regard(
        "translate", world / "model", "--beam", "1", stdin=b"the cat\n" + b"the cat sees the dog. " * 200 + b"\n"
    )
    assert done.out.count("\n") == 2
    assert "line 2 is longer than 64 tokens and is cut into" in done.err
    assert "line 1" not in done.err


def test_python_names_what_is_no_text_or_no_beam(world: Path) -> None:
    translator = regard_package.load(world / "model", device="cpu")
    with refused(UsageError, "texts[1]", "bytes"):
        translator.translate(["a", b"b"])
    with refused(UsageError, None, "str"):
        translator.nbest("the cat")
    for beam, told in ((0, "1"), (-1, "1"), (101, "1"), ("5", "'5'")):
        with refused(UsageError, None, told):
            translator.translate("the cat", beam=beam)
    assert isinstance(translator.translate(("the cat",)), list)


def test_the_beam_widens_to_hold_what_is_asked_for(world: Path, regard: Run) -> None:
    assert "beam = 5" in (world / "model" / "recipe.toml").read_text()
    done = regard("translate", world / "model", "--nbest", "7", stdin=b"the cat\n")
    assert (done.code, len(done.out.splitlines())) == (0, 7)


def test_evaluate_scores_with_signatures_and_check_says_usable(world: Path, regard: Run) -> None:
    done = regard("evaluate", world / "model", "--source", world / "a.en", "--reference", world / "a.de", "--beam", "1")
    assert done.code == 0
    assert done.out.startswith("BLEU ")
    assert "nrefs:1|bs:1000" in done.out
    options = ["--source", world / "a.en", "--reference", world / "a.de", "--beam", "1", "--lowercase", "--json"]
    values = json.loads(regard("evaluate", world / "model", *options).out)
    assert "case:lc" in values["bleu_signature"]
    assert values["sentences"] == 200
    done = regard("check", "--source", world / "a.en", "--target", world / "a.de", "--model", world / "model", "--json")
    assert (done.code, json.loads(done.out)["usable"]) == (0, True)


def test_the_card_says_what_the_model_was_made_of_and_by(world: Path, regard: Run, train_options: Any) -> None:
    card = (world / "model" / "card.md").read_text()
    for name in ("a.en", "a.de"):
        assert f"| `{name}` |" in card
        assert hashlib.sha256((world / name).read_bytes()).hexdigest() in card
    assert f"| Regard | {regard_package.__version__}, torch " in card
    assert "`regard train --source a.en --target a.de --output model --set training.validate_every=6" in card
    assert re.search(r"\| written \| \d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC \|", card)
    assert re.search(r"\| training \| \d+\.\d seconds", card)
    assert str(world.parent) not in card
    assert "Licence" not in card
    done = regard(*train_options(world, world / "named"), "--licence", "CC BY 4.0")
    assert done.code == 0, done.err
    assert "regard translate" in done.out
    named = world / "named"
    assert "Licence of the data, as named for the training: CC BY 4.0." in (named / "card.md").read_text()
    assert (named / "model.safetensors").read_bytes() == (world / "model" / "model.safetensors").read_bytes()
    both = [resolved.read_fields(folder / "training") for folder in (named, world / "model")]
    assert both[0] == both[1]


def test_average_makes_a_model_and_slim_leaves_what_is_used(world: Path, regard: Run, train_options: Any) -> None:
    model, said = world / "model", regard("translate", world / "model", "the cat").out
    assert regard("average", model, "--last", "1", "--output", world / "mean").code == 0
    assert regard("translate", world / "mean", stdin=b"the cat\n").code == 0
    for more, remains in ((("--dry-run",), True), ((), False)):
        done = regard("slim", model, *more)
        assert (done.code, (model / "training").is_dir()) == (0, remains)
        assert "training/checkpoints" in done.err
        assert "MB" in done.out
    names = {"recipe.toml", "model.safetensors", "tokenizer.json", "words.source.json", "card.md", "confidence.json"}
    names |= {"manifest.json", "processors.json"}
    assert {path.name for path in model.iterdir()} == names
    assert regard("translate", model, "the cat").out == said
    assert "nothing to remove" in regard("slim", model).out
    assert "without the training/" in regard(*train_options(world, model)).sentence
    assert regard("average", model, "--output", world / "another").code == 1


def test_attention_in_the_terminal_as_svg_and_as_json(world: Path, regard: Run) -> None:
    text = "the cat sees the old dog"
    attend = partial(regard, "attend", world / "model", text)
    assert "layer 2 head 2" in attend().out
    done = attend("--kind", "cross", "--layer", 1, "--head", 2, "--target", "die Katze")
    assert "Encoder-decoder attention, layer 1, head 2" in done.out
    done = attend("--head", 1, "--words", "--svg", world / "picture.svg")
    assert (done.code, done.out) == (0, "")
    root = ElementTree.parse(world / "picture.svg").getroot()
    assert sum(element.tag.endswith("rect") for element in root.iter()) == 7 * 7 + 2
    values = json.loads(attend("--head", 1, "--words", "--json").out)
    assert values["queries"] == [*text.split(), "</s>"]
    assert all(abs(sum(weight_K) - 1) < 1e-4 for weight_K in values["heads"][0]["weights"])
    assert "> " in attend("--token", "cat").out
    assert attend("--token", "cat", "--beside", "the green cat", "--svg", world / "two.svg").code == 0
    assert (world / "two.svg").read_text().count("word from") == 2
