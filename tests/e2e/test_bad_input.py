"""Broken files and wrong options: each gives one clear sentence and an exit code, and destroys nothing."""

import gzip
import hashlib
import lzma
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Break = Callable[[Path], list[object]]
"""Breaks something in the world and gives the command that meets it."""


def learn(world: Path, *more: object, source: object = "a.en", target: object = "a.de") -> list[object]:
    return ["train", "--source", world / str(source), "--target", world / str(target), "--output", world / "new", *more]


def written(path: Path, content: bytes) -> Path:
    path.write_bytes(content)
    return path


def missing_file(world: Path) -> list[object]:
    return learn(world, source="absent.en")


def folder_for_file(world: Path) -> list[object]:
    return learn(world, source="model")


def empty_files(world: Path) -> list[object]:
    written(world / "e.en", b"")
    written(world / "e.de", b"")
    return learn(world, source="e.en", target="e.de")


def one_line_lost(world: Path) -> list[object]:
    written(world / "short.de", b"".join((world / "a.de").read_bytes().splitlines(keepends=True)[:-1]))
    return learn(world, target="short.de")


def a_picture(world: Path) -> list[object]:
    written(world / "p.en", b"\x89PNG\r\n\x1a\n" + bytes(range(256)) * 9)
    return learn(world, source="p.en")


def binary(world: Path) -> list[object]:
    written(world / "b.en", bytes(2000) + b"\x01\x02\n" * 100)
    return learn(world, source="b.en")


def utf16(world: Path) -> list[object]:
    written(world / "u.en", (world / "a.en").read_text().encode("utf-16"))
    return learn(world, source="u.en")


def gzip_cut_off(world: Path) -> list[object]:
    whole = gzip.compress((world / "a.en").read_bytes())
    written(world / "cut.en.gz", whole[: len(whole) // 2])
    return learn(world, source="cut.en.gz")


def gzip_by_name_only(world: Path) -> list[object]:
    shutil.copy(world / "a.en", world / "plain.en.gz")
    return learn(world, source="plain.en.gz")


def xz_with_flipped_bits(world: Path) -> list[object]:
    content = bytearray(lzma.compress((world / "a.en").read_bytes()))
    content[len(content) // 2] ^= 0xFF
    written(world / "bad.en.xz", bytes(content))
    return learn(world, source="bad.en.xz")


def table_of_one_column(world: Path) -> list[object]:
    shutil.copy(world / "a.en", world / "one.tsv")
    return ["train", "--pairs", world / "one.tsv", "--output", world / "new"]


def json_broken_in_line_two(world: Path) -> list[object]:
    written(world / "x.jsonl", b'{"en": "a", "de": "b"}\n{"en": "a", \n')
    return ["train", "--pairs", world / "x.jsonl", "--columns", "en,de", "--output", world / "new"]


def json_without_that_key(world: Path) -> list[object]:
    written(world / "x.jsonl", b'{"en": "a", "de": "b"}\n' * 3)
    return ["train", "--pairs", world / "x.jsonl", "--columns", "en,fr", "--output", world / "new"]


def columns_that_are_three(world: Path) -> list[object]:
    written(world / "x.tsv", b"a\tb\n")
    return ["train", "--pairs", world / "x.tsv", "--columns", "1,2,3", "--output", world / "new"]


def all_lines_empty(world: Path) -> list[object]:
    written(world / "e.en", b"\n" * 50)
    written(world / "e.de", b"\n" * 50)
    return learn(world, source="e.en", target="e.de")


def output_is_a_file(world: Path) -> list[object]:
    return [*learn(world)[:5], "--output", world / "thesis.txt"]


def output_is_somebody_elses(world: Path) -> list[object]:
    return [*learn(world)[:5], "--output", world / "photos"]


def output_was_made_otherwise(world: Path) -> list[object]:
    return [*learn(world)[:5], "--output", world / "model", "--steps", "7"]


def output_cannot_be_written(world: Path) -> list[object]:
    return [*learn(world)[:5], "--output", world / "thesis.txt" / "model"]


def nothing_to_resume(world: Path) -> list[object]:
    return learn(world, "--resume", "must")


def no_whole_checkpoint(world: Path) -> list[object]:
    for path in (world / "model" / "training" / "checkpoints").glob("step-*/weights.safetensors"):
        path.write_bytes(path.read_bytes()[:-1])
    return ["average", world / "model", "--output", world / "new"]


def recipe_missing(world: Path) -> list[object]:
    return learn(world, "--recipe", world / "absent.toml")


def recipe_not_toml(world: Path) -> list[object]:
    return learn(world, "--recipe", written(world / "r.toml", b"model:\n  d_model: 5\n"))


def recipe_not_utf8(world: Path) -> list[object]:
    return learn(world, "--recipe", written(world / "r.toml", b'task = "\xff"\n'))


def recipe_misspelt(world: Path) -> list[object]:
    return learn(world, "--recipe", written(world / "r.toml", b"[model]\nd_modell = 64\n"))


def recipe_out_of_range(world: Path) -> list[object]:
    return learn(world, "--recipe", written(world / "r.toml", b"[model]\ndropout = 1.5\n"))


def recipe_of_the_future(world: Path) -> list[object]:
    return learn(world, "--recipe", written(world / "r.toml", b"format = 99\n"))


def recipe_with_a_word_for_a_number(world: Path) -> list[object]:
    return learn(world, "--recipe", written(world / "r.toml", b'[training]\nsteps = "many"\n'))


def heads_that_do_not_divide(world: Path) -> list[object]:
    return learn(world, "--set", "model.d_model=100", "--set", "model.heads=7")


def setting_without_a_value(world: Path) -> list[object]:
    return learn(world, "--set", "model.d_model")


def setting_misspelt(world: Path) -> list[object]:
    return learn(world, "--set", "model.dmodel=64")


def preset_misspelt(world: Path) -> list[object]:
    return learn(world, "--preset", "tinny")


def no_minutes(world: Path) -> list[object]:
    return learn(world, "--minutes", "0")


def no_steps(world: Path) -> list[object]:
    return learn(world, "--steps", "-3")


def no_threads(world: Path) -> list[object]:
    return learn(world, "--threads", "0")


def no_such_device(world: Path) -> list[object]:
    return learn(world, "--device", "cudaa")


def weights_of_two_for_one(world: Path) -> list[object]:
    return learn(world, "--weight", "1", "--weight", "2")


def half_a_validation(world: Path) -> list[object]:
    return learn(world, "--valid-source", world / "a.en")


def command_misspelt(world: Path) -> list[object]:
    return ["trian"]


def option_misspelt(world: Path) -> list[object]:
    return learn(world, "--minuets", "5")


def no_model(world: Path) -> list[object]:
    return ["translate", world / "absent"]


def no_model_but_photos(world: Path) -> list[object]:
    return ["translate", world / "photos"]


def model_cut_off(world: Path) -> list[object]:
    path = world / "model" / "model.safetensors"
    written(path, path.read_bytes()[:-100])
    return ["translate", world / "model"]


def model_with_a_flipped_bit(world: Path) -> list[object]:
    path = world / "model" / "model.safetensors"
    content = bytearray(path.read_bytes())
    content[-77] ^= 4
    written(path, bytes(content))
    return ["translate", world / "model"]


def tokenizer_broken(world: Path) -> list[object]:
    written(world / "model" / "tokenizer.json", b'{"model": ')
    return ["translate", world / "model"]


def recipe_of_the_model_edited(world: Path) -> list[object]:
    path = world / "model" / "recipe.toml"
    written(path, path.read_bytes().replace(b"d_ff = 32", b"d_ff = 64"))
    return ["translate", world / "model"]


def beam_of_nothing(world: Path) -> list[object]:
    return ["translate", world / "model", "--beam", "0"]


def references_of_another_length(world: Path) -> list[object]:
    written(world / "few.de", b"die Katze\n")
    return ["evaluate", world / "model", "--source", world / "a.en", "--reference", world / "few.de"]


def nothing_to_evaluate(world: Path) -> list[object]:
    written(world / "e.en", b"")
    return ["evaluate", world / "model", "--source", world / "e.en", "--reference", world / "e.en"]


def no_text_to_attend(world: Path) -> list[object]:
    return ["attend", world / "model", "  "]


def no_such_layer(world: Path) -> list[object]:
    return ["attend", world / "model", "the cat", "--layer", "9", "--head", "1"]


def no_such_kind(world: Path) -> list[object]:
    return ["attend", world / "model", "the cat", "--kind", "croos"]


def picture_that_cannot_be_written(world: Path) -> list[object]:
    return ["attend", world / "model", "the cat", "--head", "1", "--svg", world / "thesis.txt" / "a.svg"]


def average_over_a_model(world: Path) -> list[object]:
    return ["average", world / "model", "--output", world / "model"]


def information_on_nothing(world: Path) -> list[object]:
    return ["info", "basse"]


def model_beyond_memory(world: Path) -> list[object]:
    sizes = ["d_model=65536", "d_ff=262144", "encoder_layers=256", "decoder_layers=256"]
    return learn(world, *(word for size in sizes for word in ("--set", f"model.{size}")))


def copies_to_check(world: Path) -> list[object]:
    return ["check", "--source", world / "a.en", "--target", world / "absent.de"]


LABELLED = "the cat sees one,a\nthe cat sees two,b\nthe dog sees three,a\nthe dog sees four,b\n" * 9


def teach(world: Path, *more: object, name: str = "l.csv", content: bytes | None = None) -> list[object]:
    """Learn classes from a file with this content."""
    if content is not None:
        written(world / name, content)
    return ["train", "--task", "classification", "--train", world / name, "--output", world / "new", *more]


def labels_missing_file(world: Path) -> list[object]:
    return teach(world, name="absent.csv")


def labels_empty(world: Path) -> list[object]:
    return teach(world, content=b"")


def labels_header_alone(world: Path) -> list[object]:
    return teach(world, content=b"text,label\n")


def labels_all_one(world: Path) -> list[object]:
    return teach(world, content=b"the cat,a\nthe dog,a\n" * 20)


def labels_no_column(world: Path) -> list[object]:
    return teach(world, content=b"the cat\nthe dog\n")


def labels_column_misnamed(world: Path) -> list[object]:
    return teach(world, "--columns", "text,klass", content=b"text,label\nthe cat,a\nthe dog,b\n")


def labels_column_beyond(world: Path) -> list[object]:
    return teach(world, "--columns", "1,7", content=b"the cat,a\nthe dog,b\n")


def labels_one_column_named(world: Path) -> list[object]:
    return teach(world, "--columns", "text", content=b"the cat,a\nthe dog,b\n")


def labels_mixed_widths(world: Path) -> list[object]:
    return teach(world, content=b"the cat,a\nthe dog, the snake,b\n")


def labels_quote_open(world: Path) -> list[object]:
    return teach(world, content=b'the cat,a\n"the dog,b\n' + b"the cat,b\n" * 5)


def labels_binary(world: Path) -> list[object]:
    return teach(world, content=bytes(2000) + b"\x01\x02\n" * 100)


def labels_picture(world: Path) -> list[object]:
    return teach(world, content=b"\x89PNG\r\n\x1a\n" + bytes(range(256)) * 9)


def labels_in_a_cell_too_long(world: Path) -> list[object]:
    return teach(world, content=b'"' + b"x" * 200_000 + b'",a\nthe cat,b\n')


def labels_swapped(world: Path) -> list[object]:
    rows = "".join(f"ab,the cat sees {number}\n" for number in range(200))
    return teach(world, content=rows.encode())


def labels_not_json(world: Path) -> list[object]:
    return teach(world, name="l.jsonl", content=b'{"text": "a", "label": "b"}\n{"text"\n')


def labels_without_key(world: Path) -> list[object]:
    return teach(world, name="l.jsonl", content=b'{"text": "a", "label": "b"}\n{"text": "a"}\n')


def labels_of_unknown_form(world: Path) -> list[object]:
    return teach(world, name="l.txt", content=LABELLED.encode())


def labels_no_number(world: Path) -> list[object]:
    return teach(world, "--set", "classification.kind=regression", content=LABELLED.encode())


def labels_too_few(world: Path) -> list[object]:
    return teach(world, content=b"the cat,a\nthe cat,b\n")


def labels_one_class_beside_what_is_none(world: Path) -> list[object]:
    content = LABELLED.replace(",b", ",oos").encode()
    return teach(world, "--set", "classification.out_of_scope=oos", content=content)


def labels_without_what_is_none(world: Path) -> list[object]:
    return teach(world, "--set", "classification.out_of_scope=oos", content=LABELLED.encode())


def labels_validated_on_others(world: Path) -> list[object]:
    written(world / "v.csv", b"a cat hears,c\na dog hears,d\n")
    return teach(world, "--valid", world / "v.csv", content=LABELLED.encode())


def labels_missing_validation(world: Path) -> list[object]:
    return teach(world, "--valid", world / "absent.csv", content=LABELLED.encode())


def labels_not_named(world: Path) -> list[object]:
    return ["train", "--task", "classification", "--output", world / "new"]


def task_misspelt(world: Path) -> list[object]:
    return ["train", "--task", "clasification", "--train", world / "a.en", "--output", world / "new"]


def task_of_another_file(world: Path) -> list[object]:
    return ["train", "--task", "classification", *learn(world)[1:]]


def train_without_task(world: Path) -> list[object]:
    return ["train", "--train", world / "a.en", "--output", world / "new"]


def begun_from_nothing(world: Path) -> list[object]:
    return teach(world, "--from", world / "absent", content=LABELLED.encode())


def begun_from_photos(world: Path) -> list[object]:
    return teach(world, "--from", world / "photos", content=LABELLED.encode())


def begun_from_a_translator(world: Path) -> list[object]:
    return teach(world, "--from", world / "model", content=LABELLED.encode())


def sections_of_another_task(world: Path) -> list[object]:
    return teach(world, "--set", "decoding.beam=3", content=LABELLED.encode())


def family_of_another_task(world: Path) -> list[object]:
    return teach(world, "--set", "model.family=gpt", content=LABELLED.encode())


def classify_by_a_translator(world: Path) -> list[object]:
    return ["classify", world / "model"]


def classify_by_nothing(world: Path) -> list[object]:
    return ["classify", world / "absent"]


def threshold_beyond_one(world: Path) -> list[object]:
    return ["classify", world / "model", "--threshold", "1.5"]


def evaluate_a_translator_on_labels(world: Path) -> list[object]:
    return ["evaluate", world / "model", "--test", written(world / "l.csv", LABELLED.encode())]


def evaluate_on_nothing(world: Path) -> list[object]:
    return ["evaluate", world / "model"]


def encode_no_such_layer(world: Path) -> list[object]:
    return ["encode", world / "model", "--layer", "9"]


def encode_into_a_text(world: Path) -> list[object]:
    return ["encode", world / "model", "--output", world / "thesis.txt"]


def encode_into_a_folder_that_is_not_there(world: Path) -> list[object]:
    return ["encode", world / "model", "--output", world / "absent" / "a.npz"]


def encode_tokens_pooled(world: Path) -> list[object]:
    return ["encode", world / "model", "--each", "token", "--pool", "mean"]


def check_labels_of_nothing(world: Path) -> list[object]:
    return ["check", "--task", "classification"]


def check_a_task_misspelt(world: Path) -> list[object]:
    return ["check", "--task", "clasification", "--train", world / "a.en"]


def check_pairs_as_labels(world: Path) -> list[object]:
    return ["check", "--task", "classification", "--source", world / "a.en", "--target", world / "a.de"]


CASES: list[tuple[Break, int, str]] = [
    (missing_file, 2, "absent.en"),
    (folder_for_file, 2, "folder"),
    (empty_files, 1, "no sentence pairs"),
    (one_line_lost, 1, "199"),
    (a_picture, 1, "picture"),
    (binary, 1, "binary"),
    (utf16, 1, "UTF-16"),
    (gzip_cut_off, 1, "cut"),
    (gzip_by_name_only, 1, ".gz"),
    (xz_with_flipped_bits, 1, "damaged"),
    (table_of_one_column, 1, "one.tsv:1"),
    (json_broken_in_line_two, 1, "x.jsonl:2"),
    (json_without_that_key, 1, "fr"),
    (columns_that_are_three, 2, "--columns"),
    (all_lines_empty, 1, "empty"),
    (output_is_a_file, 1, "thesis.txt"),
    (output_is_somebody_elses, 1, "photos"),
    (output_was_made_otherwise, 1, "choose another --output"),
    (output_cannot_be_written, 1, "thesis.txt"),
    (nothing_to_resume, 3, "resume"),
    (no_whole_checkpoint, 1, "damaged"),
    (recipe_missing, 2, "absent.toml"),
    (recipe_not_toml, 2, "TOML"),
    (recipe_not_utf8, 2, "r.toml"),
    (recipe_misspelt, 2, "Did you mean 'model.d_model'"),
    (recipe_out_of_range, 2, "model.dropout"),
    (recipe_of_the_future, 2, "newer"),
    (recipe_with_a_word_for_a_number, 2, "training.steps"),
    (heads_that_do_not_divide, 2, "heads 7"),
    (setting_without_a_value, 2, "section.key=value"),
    (setting_misspelt, 2, "Did you mean 'model.d_model'"),
    (preset_misspelt, 2, "Did you mean 'tiny'"),
    (no_minutes, 2, "minutes"),
    (no_steps, 2, "steps"),
    (no_threads, 2, "threads"),
    (no_such_device, 2, "cudaa"),
    (weights_of_two_for_one, 2, "weight"),
    (half_a_validation, 2, "--valid-target"),
    (command_misspelt, 2, "Did you mean 'train'"),
    (option_misspelt, 2, "Did you mean '--minutes'"),
    (no_model, 1, "absent"),
    (no_model_but_photos, 1, "recipe.toml"),
    (model_cut_off, 1, "model.safetensors"),
    (model_with_a_flipped_bit, 1, "damaged"),
    (tokenizer_broken, 1, "tokenizer.json"),
    (recipe_of_the_model_edited, 1, "recipe.toml"),
    (beam_of_nothing, 2, "beam"),
    (references_of_another_length, 1, "few.de"),
    (nothing_to_evaluate, 1, "nothing to score"),
    (no_text_to_attend, 1, "empty"),
    (no_such_layer, 2, "layers 1 to 2"),
    (no_such_kind, 2, "'encoder', 'decoder', 'cross'"),
    (picture_that_cannot_be_written, 2, "thesis.txt"),
    (average_over_a_model, 1, "holds something"),
    (information_on_nothing, 2, "Did you mean 'base'"),
    (model_beyond_memory, 1, "GB are free"),
    (copies_to_check, 2, "absent.de"),
    (labels_missing_file, 2, "absent.csv"),
    (labels_empty, 1, "no texts"),
    (labels_header_alone, 1, "no texts"),
    (labels_all_one, 1, "nothing to classify"),
    (labels_no_column, 1, "l.csv:1"),
    (labels_column_misnamed, 1, "'klass'"),
    (labels_column_beyond, 1, "column 7"),
    (labels_one_column_named, 2, "--columns"),
    (labels_mixed_widths, 1, "l.csv:2"),
    (labels_quote_open, 1, "l.csv:2"),
    (labels_binary, 1, "binary"),
    (labels_picture, 1, "picture"),
    (labels_in_a_cell_too_long, 1, "l.csv:1"),
    (labels_swapped, 1, "swapped"),
    (labels_not_json, 1, "l.jsonl:2"),
    (labels_without_key, 1, "l.jsonl:2"),
    (labels_of_unknown_form, 2, "--columns"),
    (labels_no_number, 1, "number"),
    (labels_too_few, 1, ""),
    (labels_one_class_beside_what_is_none, 1, "nothing to classify"),
    (labels_without_what_is_none, 1, "so no threshold can be chosen"),
    (labels_validated_on_others, 1, "has a label of the training data"),
    (labels_missing_validation, 2, "absent.csv"),
    (labels_not_named, 2, "--train"),
    (task_misspelt, 2, "Did you mean 'classification'"),
    (task_of_another_file, 2, "--train"),
    (train_without_task, 2, "--task"),
    (begun_from_nothing, 1, "absent"),
    (begun_from_photos, 1, "photos"),
    (begun_from_a_translator, 2, "needs bert"),
    (sections_of_another_task, 2, "[decoding]"),
    (family_of_another_task, 2, "gpt"),
    (classify_by_a_translator, 2, "is a translator; use regard translate"),
    (classify_by_nothing, 1, "absent"),
    (threshold_beyond_one, 2, "--threshold"),
    (evaluate_a_translator_on_labels, 2, "--source"),
    (evaluate_on_nothing, 2, "--test"),
    (encode_no_such_layer, 2, "layers 1 to 2"),
    (encode_into_a_text, 2, ".npz"),
    (encode_into_a_folder_that_is_not_there, 2, "a.npz"),
    (encode_tokens_pooled, 2, "--pool"),
    (check_labels_of_nothing, 2, "--train"),
    (check_a_task_misspelt, 2, "Did you mean 'classification'"),
    (check_pairs_as_labels, 2, "--source"),
]


def contents(folder: Path) -> dict[str, str]:
    """Every file and what it holds, as a fingerprint."""
    return {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


@pytest.mark.parametrize(("broken", "code", "said"), CASES, ids=[case[0].__name__ for case in CASES])
def test_one_sentence_and_nothing_destroyed(world: Path, regard: Any, broken: Break, code: int, said: str) -> None:
    written(world / "thesis.txt", b"years of work")
    (world / "photos").mkdir()
    written(world / "photos" / "cat.jpg", b"\xff\xd8 a cat")
    command = broken(world)
    before = contents(world)
    done = regard(*command, stdin=b"the cat\n")
    assert done.code == code, done.err
    assert done.out == ""
    assert done.sentence.startswith("regard: ")
    assert said in done.sentence
    assert sum(line.startswith("regard: ") for line in done.err.splitlines()) == 1
    assert "Traceback" not in done.err
    assert "unexpected error" not in done.err
    assert len(done.sentence) < 600
    after = contents(world)
    assert {name: after.get(name) for name in before} == before


def test_a_second_writer_is_refused(world: Path, regard: Any, train_options: Any) -> None:
    import fcntl

    with open(world / "model" / "training" / "lock", "a+b") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        before = contents(world)
        done = regard(*train_options(world, world / "model"))
        assert done.code == 1
        assert "another" in done.sentence or "writ" in done.sentence
        assert contents(world) == before


def test_when_no_checkpoint_is_whole_it_does_not_start_again(world: Path, regard: Any, train_options: Any) -> None:
    """Exit code 3: hours of work are never silently begun anew."""
    checkpoints = world / "model" / "training" / "checkpoints"
    for path in checkpoints.glob("step-*/state.json"):
        path.write_bytes(path.read_bytes()[:-1])
    for name in ("model.safetensors", "manifest.json", "card.md"):
        (world / "model" / name).unlink()
    done = regard(*train_options(world, world / "model"))
    assert done.code == 3
    assert "--resume never" in done.sentence
    assert list(checkpoints.glob("*.corrupt-*"))


def test_a_result_that_cannot_be_written_is_told(world: Path) -> None:
    """A full disk behind stdout."""
    import subprocess
    import sys

    if not os.path.exists("/dev/full"):
        pytest.skip("needs /dev/full")
    with open("/dev/full", "wb") as full:
        done = subprocess.run(
            [sys.executable, "-m", "regard.cli", "info", "tiny"],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
    assert done.returncode == 1
    assert done.stderr == "regard: stdout: No space left on device\n"
