"""Every command that leaves something on the disk, on so little that it takes a moment."""

import random
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from regard.runs.conversion import export_model
from regard.runs.demo import images, translation
from tests.tasks.small_tasks import EVERY, SOURCE, keep, put, spanner, translator

Words = Callable[[Path, Path], list[object]]
"""A command and its options, by the folder of its data and the output it is to make."""

SMALL = "model.d_model=16 model.dropout=0.1 training.tokens=128 training.validate_every=4 text.vocabulary=300".split()
LAYERED = "model.d_ff=32 model.heads=2"
ONE = f"{LAYERED} model.layers=1 data.max_tokens=48"
TWO = "model.encoder_layers=1 model.decoder_layers=1 data.max_tokens=48"
READER = "model.family=rnn-encoder data.max_tokens=48"
AGAINST = f"{READER} model.pool=attention classification.adversarial=0.5"
SPANS = f"text_to_text.spans=true {LAYERED} {TWO} text.vocabulary=400 data.max_tokens=24 data.documents=file"
CASES: dict[str, tuple[str, str, str]] = {
    "recurrent": ("translation", "pairs.tsv", f"model.family=rnn {TWO}"),
    "feeding": ("translation", "pairs.tsv", f"model.family=rnn model.input_feeding=true {TWO}"),
    "relative": ("translation", "pairs.tsv", f"model.positions=relative model.norm=rms {LAYERED} {TWO}"),
    "batch norm": ("translation", "pairs.tsv", f"model.norm=batch model.decoder_norm=layer {LAYERED} {TWO}"),
    "guided": (
        "translation",
        "pairs.tsv",
        f"training.guided_alignment=0.5 text.bpe_dropout=0.1 text.tags=0.5 {LAYERED} {TWO}",
    ),
    "classes": ("classification", "labels.tsv", f"{ONE} data.word_dropout=0.2 training.ema=0.9"),
    "recurrent classes": ("classification", "labels.tsv", AGAINST),
    "recurrent tags": ("tagging", "tags.conll", f"{READER} model.cell=lstm tagging.crf=true"),
    "tags": ("tagging", "tags.conll", ONE),
    "tag chain": ("tagging", "tags.conll", f"{ONE} tagging.crf=true"),
    "language model": ("language-model", "text.txt", f"{ONE} text.units=characters"),
    "masked words": ("masked-lm", "text.txt", f"{ONE} training.accumulate=2 data.documents=line"),
    "missing spans": ("text-to-text", "text.txt", f"{SPANS} training.ema=0.9"),
    "answers": ("text-to-text", "pairs.tsv", f"model.positions=relative {LAYERED} {TWO}"),
    "images": ("image-classification", "images.csv", f"{ONE} images.shift=1"),
}
"""A small run of every task and family: its task, its file, its recipe."""
TASKS = {
    **{name: case for name, case in CASES.items() if case[0] != "translation"},
    "pieces": ("language-model", "text.txt", ONE),
}
"""Those of the other tasks, the language model by characters and by pieces."""


def write(folder: Path) -> Path:
    """A little of every kind of data."""
    draw = random.Random(5)
    words = ["ape", "bear", "cat", "dog", "elk", "fox", "gnu", "hen"]
    lines = [" ".join(draw.choices(words, k=draw.randint(2, 7))) for _ in range(160)]
    pairs = [(f"{n} {line}", f"{' '.join(line.split()[::-1])} {n}") for n, line in enumerate(lines)]
    (folder / "pairs.tsv").write_text("".join(f"{source}\t{target}\n" for source, target in pairs))
    for part, some in (("train", pairs[20:]), ("valid", pairs[:10]), ("test", pairs[10:20])):
        for code, side in (("en", 0), ("de", 1)):
            (folder / f"{part}.{code}").write_text("".join(f"{pair[side]}\n" for pair in some))
    (folder / "labels.tsv").write_text("".join(f"{n} {line}\t{line.split()[0]}\n" for n, line in enumerate(lines)))
    tagged = ("".join(f"{word}\t{'B-X' if word < 'd' else 'O'}\n" for word in line.split()) for line in lines)
    (folder / "tags.conll").write_text("\n".join(tagged))
    (folder / "text.txt").write_text("\n\n".join(lines * 3))
    rows = [[draw.randint(0, 16) for _ in range(16)] for _ in range(120)]
    (folder / "images.csv").write_text("".join(f"{','.join(map(str, row))},{int(sum(row) > 128)}\n" for row in rows))
    return folder


def recipes(folder: Path) -> None:
    """Two small recipes to compare."""
    small = "[text]\nvocabulary = 300\n[data]\nmax_tokens = 40\n[training]\ntokens = 128\n[decoding]\nbeam = 1\n"
    for name in ("none", "dot"):
        model = f'[model]\nfamily = "rnn"\nscore = "{name}"\nd_model = 8\n'
        (folder / f"{name}.toml").write_text(f"{small}max_extra = 3\n{model}")


def world(folder: Path) -> Path:
    """That data, recipes to compare, models of ours and of others, and checkpoints of a translator to average."""
    write(folder)
    recipes(folder)
    for name, made in MODELS.items():
        put(folder / name, made())
        export_model(folder / name, folder / f"{name} of others")
    for step in (2, 4, 6):
        keep(folder / "translator", translator(step), step, "checkpoints")
    return folder


def training(case: str, data: Path, output: Path) -> list[object]:
    """The training of a case of :data:`TASKS`."""
    task, file, settings = TASKS[case]
    small = [one for one in SMALL if not (one.startswith("text.") and task == "image-classification")]
    chosen = [word for setting in (*small, *settings.split()) for word in ("--set", setting)]
    return [*_train(output), "--task", task, "--train", data / file, *chosen]


def begun(data: Path, output: Path) -> list[object]:
    """A training that begins from another model."""
    chosen = ["--set", "training.tokens=128", "--set", "training.validate_every=4", "--from", data / "filler"]
    return [*_train(output), "--task", "classification", "--train", data / "labels.tsv", *chosen]


def _train(output: Path) -> list[object]:
    options = ["--steps", 8, "--seed", 3, "--threads", 1, "--device", "cpu", "--despite-check"]
    saves = ["--set", "training.save_every=2", "--set", "training.keep=2"]
    return ["train", "--output", output, *options, *saves]


def comparison(*more: object) -> Words:
    """Two recipes compared."""

    def words(data: Path, output: Path) -> list[object]:
        files: list[object] = []
        for part, option in (("train", ""), ("valid", "valid-"), ("test", "test-")):
            files += [f"--{option}source", data / f"{part}.en", f"--{option}target", data / f"{part}.de"]
        options = ["--threads", 1, "--despite-check", "--output", output]
        return ["compare", data / "none.toml", data / "dot.toml", *files, *options, *more]

    return words


def demonstration(*more: object) -> Words:
    """The demonstration, of a corpus and a model that are small in this process."""

    def words(data: Path, output: Path) -> list[object]:
        translation.TRAIN, translation.VALID, translation.TEST = 300, 30, 30
        translation.RECIPE = {**translation.RECIPE, "model": {"encoder_layers": 2, "decoder_layers": 1, **SIZES}}
        images.TRAIN, images.VALID, images.TEST = 300, 50, 50
        images.RECIPE = {**images.RECIPE, "model": {**images.RECIPE["model"], "layers": 1, **SIZES}}
        return ["demo", "--output", output, "--steps", 4, "--threads", 1, *more]

    return words


SIZES = {"d_model": 16, "d_ff": 32, "heads": 2}
MODELS: dict[str, Callable[[], Any]] = {
    **{name: EVERY[name] for name in ("translator", "classifier", "tagger", "filler", "speaker", "viewer")},
    "spanner": lambda: spanner(norm="rms", norm_place="pre", biases=False, scale_embedding=False, scale_output=True),
}
"""Models that can be brought in and taken out."""
FOLDERS: dict[str, Words] = {
    "average": lambda data, output: ["average", data / "translator", "--output", output],
    "average some": lambda data, output: ["average", data / "translator", "--last", 2, "--output", output],
    **{
        f"import {name}": lambda data, output, name=name: ["import", data / f"{name} of others", output]
        for name in MODELS
        if name != "translator"
    },
    **{
        f"export {name}": lambda data, output, name=name: ["export", data / name, output]
        for name in ("translator", "spanner")
    },
    "convert": lambda data, output: ["export", data / "translator", output, "--to", "ctranslate2"],
}
"""Commands that make a folder at once."""
FILES: dict[str, Words] = {
    form: lambda data, output, form=form: ["attend", data / "translator", SOURCE, f"--{form}", f"{output}.{form}"]
    for form in ("html", "svg")
}
FILES["scores"] = lambda data, output: ["evaluate", data / "filler", "--test", data / "text.txt", "--threads", 1]
"""Commands that make a file, or temporary ones only."""
RUNS: dict[str, Words] = {
    "compare": comparison("--steps", 4),
    "compare shares": comparison("--steps", 2, "--seeds", 1, 2, "--fraction", 0.5, 1),
    "demo": demonstration(),
    "demo without norms": demonstration("--without", "norm"),
    "demo of images": demonstration("--images"),
    "begun": begun,
    **{name: partial(training, name) for name in TASKS},
}
"""Commands that train."""
