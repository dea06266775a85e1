"""Broken files and wrong options: each gives one clear sentence and an exit code, and destroys nothing."""

import hashlib
import shlex
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

PICTURE = b"\x89PNG\r\n\x1a\n" + bytes(range(256)) * 9
BINARY = bytes(2000) + b"\x01\x02\n" * 100
LABELLED = b"the cat sees one,a\nthe cat sees two,b\nthe dog sees three,a\nthe dog sees four,b\n" * 9
SWAPPED = b"".join(b"ab,the cat sees %d\n" % number for number in range(200))
JSON_PAIR = b'{"en": "a", "de": "b"}\n'
JSON_LABEL = b'{"text": "a", "label": "b"}\n'
CHECKPOINTS = "model/training/checkpoints/step-*/weights.safetensors"
SCOPE = "--set classification.out_of_scope=oos"
HUGE = " ".join(
    f"--set model.{size}" for size in ("d_model=65536", "d_ff=262144", "encoder_layers=256", "decoder_layers=256")
)


def without_the_last_line(content: bytes) -> bytes:
    return b"".join(content.splitlines(keepends=True)[:-1])


def shorten(content: bytes) -> bytes:
    return content[:-100]


def flip(content: bytes) -> bytes:
    return content[:-77] + bytes([content[-77] ^ 4]) + content[-76:]


def edit_width(content: bytes) -> bytes:
    return content.replace(b"d_ff = 32", b"d_ff = 64")


def learn(more: str = "", source: str = "a.en", target: str = "a.de", output: str = "new") -> str:
    return f"train --source {source} --target {target} --output {output} {more}"


def pairs(name: str, columns: str) -> str:
    return f"train --pairs {name} --columns {columns} --output new"


RECIPE = learn("--recipe r.toml")


def teach(more: str = "", name: str = "l.csv") -> str:
    """Learn classes from a file; ``l.csv`` holds :data:`LABELLED` where a case has nothing else for it."""
    return f"train --task classification --train {name} --output new {more}"


@dataclass(frozen=True)
class Case:
    """A command in the world, its exit code, what its sentence holds; and files that are broken before it.

    Of a function a file gets what it makes of the file that is there, else of ``a.en``.
    """

    name: str
    command: str
    code: int
    said: str
    files: Mapping[str, bytes | Callable[[bytes], bytes]] = field(default_factory=dict)


CASES = [
    Case("missing_file", learn(source="absent.en"), 2, "absent.en"),
    Case("folder_for_file", learn(source="model"), 2, "folder"),
    Case("empty_files", learn(source="e.en", target="e.de"), 1, "no sentence pairs", {"e.de": b"", "e.en": b""}),
    Case("one_line_lost", learn(target="short.de"), 1, "199", {"short.de": without_the_last_line}),
    Case("a_picture", learn(source="p.en"), 1, "picture", {"p.en": PICTURE}),
    Case("binary", learn(source="b.en"), 1, "binary", {"b.en": BINARY}),
    Case("table_of_one_column", "train --pairs one.tsv --output new", 1, "one.tsv:1", {"one.tsv": bytes}),
    Case("json_broken", pairs("x.jsonl", "en,de"), 1, "x.jsonl:2", {"x.jsonl": JSON_PAIR + b'{"en": "a", \n'}),
    Case("json_without_that_key", pairs("x.jsonl", "en,fr"), 1, "fr", {"x.jsonl": JSON_PAIR * 3}),
    Case("columns_that_are_three", pairs("x.tsv", "1,2,3"), 2, "--columns", {"x.tsv": b"a\tb\n"}),
    Case("all_lines_empty", learn(source="e.en", target="e.de"), 1, "empty", {"e.de": b"\n" * 50, "e.en": b"\n" * 50}),
    Case("output_is_a_file", learn(output="thesis.txt"), 1, "thesis.txt"),
    Case("output_is_somebody_elses", learn(output="photos"), 1, "photos"),
    Case("output_was_made_otherwise", learn("--steps 7", output="model"), 1, "choose another --output"),
    Case("output_cannot_be_written", learn(output="thesis.txt/model"), 1, "thesis.txt"),
    Case("nothing_to_resume", learn("--resume must"), 3, "resume"),
    Case("no_whole_checkpoint", "average model --output new", 1, "damaged", {CHECKPOINTS: shorten}),
    Case("recipe_missing", learn("--recipe absent.toml"), 2, "absent.toml"),
    Case("recipe_not_toml", RECIPE, 2, "TOML", {"r.toml": b"model:\n  d_model: 5\n"}),
    Case("recipe_misspelt", RECIPE, 2, "Did you mean 'model.d_model'", {"r.toml": b"[model]\nd_modell = 64\n"}),
    Case("recipe_out_of_range", RECIPE, 2, "model.dropout", {"r.toml": b"[model]\ndropout = 1.5\n"}),
    Case("recipe_of_the_future", RECIPE, 2, "newer", {"r.toml": b"format = 99\n"}),
    Case("heads_that_do_not_divide", learn("--set model.d_model=100 --set model.heads=7"), 2, "heads 7"),
    Case("setting_without_a_value", learn("--set model.d_model"), 2, "KEY=VALUE"),
    Case("setting_misspelt", learn("--set model.dmodel=64"), 2, "Did you mean 'model.d_model'"),
    Case("preset_misspelt", learn("--preset tinny"), 2, "Did you mean 'tiny'"),
    Case("no_minutes", learn("--minutes 0"), 2, "minutes"),
    Case("no_threads", learn("--threads 0"), 2, "threads"),
    Case("no_such_device", learn("--device cudaa"), 2, "cudaa"),
    Case("weights_of_two_for_one", learn("--weight 1 --weight 2"), 2, "weight"),
    Case("half_a_validation", learn("--valid-source a.en"), 2, "--valid-target"),
    Case("no_model", "translate absent", 1, "absent"),
    Case("no_model_but_photos", "translate photos", 1, "recipe.toml"),
    Case("model_cut_off", "translate model", 1, "model.safetensors", {"model/model.safetensors": shorten}),
    Case("model_with_a_flipped_bit", "translate model", 1, "damaged", {"model/model.safetensors": flip}),
    Case("tokenizer_broken", "translate model", 1, "tokenizer.json", {"model/tokenizer.json": b'{"model": '}),
    Case("recipe_of_the_model_edited", "translate model", 1, "recipe.toml", {"model/recipe.toml": edit_width}),
    Case("beam_of_nothing", "translate model --beam 0", 2, "beam"),
    Case("few_references", "evaluate model --source a.en --reference f.de", 1, "f.de", {"f.de": b"die Katze\n"}),
    Case("nothing_to_evaluate", "evaluate model --source e.en --reference e.en", 1, "nothing to score", {"e.en": b""}),
    Case("no_text_to_attend", "attend model '  '", 1, "empty"),
    Case("no_such_layer", "attend model 'the cat' --layer 9 --head 1", 2, "layers 1 to 2"),
    Case("no_such_kind", "attend model 'the cat' --kind croos", 2, "'encoder', 'decoder', 'cross'"),
    Case("average_over_a_model", "average model --output model", 1, "holds something"),
    Case("slim_photos", "slim photos", 1, "recipe.toml"),
    Case("slim_an_unscored_model", "slim model", 1, "card.md", {"model/card.md": b"# Nothing\n"}),
    Case("model_beyond_memory", learn(HUGE), 1, "GB are free"),
    Case("copies_to_check", "check --source a.en --target absent.de", 2, "absent.de"),
    Case("labels_missing_file", teach(name="absent.csv"), 2, "absent.csv"),
    Case("labels_empty", teach(), 1, "no texts", {"l.csv": b""}),
    Case("labels_all_one", teach(), 1, "nothing to classify", {"l.csv": b"the cat,a\nthe dog,a\n" * 20}),
    Case("labels_no_column", teach(), 1, "l.csv:1", {"l.csv": b"the cat\nthe dog\n"}),
    Case("labels_column_misnamed", teach("--columns text,klass"), 1, "'klass'", {"l.csv": b"text,label\na,b\nc,d\n"}),
    Case("labels_column_beyond", teach("--columns 1,7"), 1, "column 7", {"l.csv": b"the cat,a\nthe dog,b\n"}),
    Case("labels_one_column_named", teach("--columns text"), 2, "--columns", {"l.csv": b"the cat,a\nthe dog,b\n"}),
    Case("labels_mixed_widths", teach(), 1, "l.csv:2", {"l.csv": b"the cat,a\nthe dog, the snake,b\n"}),
    Case("labels_quote_open", teach(), 1, "l.csv:2", {"l.csv": b'the cat,a\n"the dog,b\n' + b"the cat,b\n" * 5}),
    Case("labels_swapped", teach(), 1, "swapped", {"l.csv": SWAPPED}),
    Case("labels_not_json", teach(name="l.jsonl"), 1, "l.jsonl:2", {"l.jsonl": JSON_LABEL + b'{"text"\n'}),
    Case("labels_without_key", teach(name="l.jsonl"), 1, "l.jsonl:2", {"l.jsonl": JSON_LABEL + b'{"text": "a"}\n'}),
    Case("labels_of_unknown_form", teach(name="l.txt"), 2, "--columns", {"l.txt": LABELLED}),
    Case("labels_no_number", teach("--set classification.kind=regression"), 1, "number"),
    Case("labels_too_few", teach(), 1, "", {"l.csv": b"the cat,a\nthe cat,b\n"}),
    Case("labels_one_beside_none", teach(SCOPE), 1, "nothing to classify", {"l.csv": LABELLED.replace(b",b", b",oos")}),
    Case("labels_without_what_is_none", teach(SCOPE), 1, "so no threshold can be chosen"),
    Case("labels_validated_on_others", teach("--valid v.csv"), 1, "v.csv:1", {"v.csv": b"a,c\n"}),
    Case("labels_not_named", "train --task classification --output new", 2, "--train"),
    Case("task_misspelt", "train --task clasification --train a.en --output new", 2, "Did you mean 'classification'"),
    Case("task_of_another_file", "train --task classification --source a.en --target a.de --output new", 2, "--train"),
    Case("train_without_task", "train --train a.en --output new", 2, "--task"),
    Case("begun_from_nothing", teach("--from absent"), 1, "absent"),
    Case("begun_from_photos", teach("--from photos"), 1, "photos"),
    Case("begun_from_a_translator", teach("--from model"), 2, "needs bert"),
    Case("sections_of_another_task", teach("--set decoding.beam=3"), 2, "[decoding]"),
    Case("family_of_another_task", teach("--set model.family=gpt"), 2, "gpt"),
    Case("classify_by_nothing", "classify absent", 1, "absent"),
    Case("encode_no_such_layer", "encode model --layer 9", 2, "layers 1 to 2"),
    Case("check_labels_of_nothing", "check --task classification", 2, "--train"),
    Case("check_pairs_as_labels", "check --task classification --source a.en --target a.de", 2, "--source"),
]


def contents(folder: Path) -> dict[str, str]:
    """Every file and what it holds, as a fingerprint."""
    return {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


@pytest.mark.one_of(25)
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_one_sentence_and_nothing_destroyed(
    world: Path, regard: Any, case: Case, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(world)
    Path("photos").mkdir()
    for name, content in (("thesis.txt", b"years"), ("photos/cat.jpg", b"\xff\xd8 a cat"), ("l.csv", LABELLED)):
        Path(name).write_bytes(content)
    for name, change in case.files.items():
        for path in sorted(world.glob(name)) or [Path(name)]:
            old = path if path.exists() else Path("a.en")
            path.write_bytes(change if isinstance(change, bytes) else change(old.read_bytes()))
    before = contents(world)
    done = regard(*shlex.split(case.command), stdin=b"the cat\n")
    assert done.code == case.code, done.err
    assert done.out == ""
    assert done.sentence.startswith("regard: ")
    assert case.said in done.sentence
    assert sum(line.startswith("regard: ") for line in done.err.splitlines()) == 1
    assert "Traceback" not in done.err
    assert "unexpected error" not in done.err
    assert len(done.sentence) < 600
    after = contents(world)
    assert {name: after.get(name) for name in before} == before


@pytest.mark.parametrize("task", ["classification", "sentence-pairs", "text-to-text"])
def test_a_pdf_in_place_of_a_table_is_called_one(task: str, tmp_path: Path, regard: Any) -> None:
    (tmp_path / "doc.pdf").write_bytes(b"%PDF-1.7\n\x80\n")
    done = regard("train", "--task", task, "--train", tmp_path / "doc.pdf", "--output", tmp_path / "m")
    assert "doc.pdf: is not UTF-8 text but a PDF" in done.sentence
