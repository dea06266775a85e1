"""Makes a list of short training runs and prints a sha256 of the weights and of the prepared data of each.

A reorganisation must not change results: print the list before it, and compare after it.

    python scripts/same_bits.py > before.txt
    python scripts/same_bits.py --expect before.txt
    python scripts/same_bits.py --expect before.txt --only translation images

A line is a run's name, the sha256 of its final weights and that of its data. The sums hold on one processor, with one
torch; both stand in the first line, with the path of the matrix products. Only what is frozen is relied on: the command
line, recipes, and files on disk. No module of regard is imported, since all may move; the one that is run is that of
the tree this script stands in. The runs take about two minutes of one core.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import random
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import safetensors.numpy

ROOT = Path(__file__).resolve().parent.parent
CPUINFO = Path("/proc/cpuinfo")
FULL = "onednn" if CPUINFO.exists() and "AuthenticAMD" in CPUINFO.read_text() else "exact"
"""The path of full precision, which is not to be measured."""
STEPS, SEED = 200, 1
RENAMED: dict[str, str] = {}
"""Old name → new name of tensors that were renamed, whole names or their beginnings up to a dot.

Sums are taken under the old names, so that they can be compared with sums from before.
"""

FIXED = f"""\
steps = {STEPS}
validate_every = {STEPS}
save_every = {STEPS}
select = "last"
warmup = 20
"""
"""Of every run's training: what a measurement or a table by size would decide otherwise."""
ENCODER = "layers = 2\nd_model = 32\nd_ff = 64\nheads = 4\nmax_positions = 64\n"
WRITER = "encoder_layers = 2\ndecoder_layers = 2\nd_model = 32\nd_ff = 64\nheads = 4\n"


@dataclass(frozen=True)
class Run:
    """A training.

    Args:
        task: the word of the recipe.
        files: the files to learn from, as they are made by :func:`write_data`; options of the command line.
        model: lines of the section ``model``.
        training: lines of the section ``training``, beside :data:`FIXED`.
        product: the path of products; never ``auto``, which is measured.
        tokens: of a batch.
        text: lines of the section ``text``, where the task reads text.
        sections: further sections.
    """

    task: str
    files: str
    model: str
    training: str = ""
    product: str = FULL
    tokens: int = 256
    text: str | None = "vocabulary = 400\n"
    sections: str = ""

    @property
    def recipe(self) -> str:
        """The recipe in TOML."""
        fixed = f'{FIXED}product = "{self.product}"\ntokens = {self.tokens}\n'
        parts = [
            f'task = "{self.task}"\nseed = {SEED}\n',
            f"[model]\n{self.model}",
            f"[training]\n{fixed}{self.training}",
        ]
        parts.append("[data]\nmax_tokens = 64\nvalidation = 20\n")
        if self.text is not None:
            parts.append(f"[text]\n{self.text}")
        return "\n".join([*parts, self.sections])


PAIRS, LABELS, TAGS = "--source pairs.en --target pairs.de", "--train labels.csv", "--train tags.conll"
TEXTS, IMAGES = "--train texts.txt", "--train images.csv"
GREEDY = "[decoding]\nbeam = 1\n"

RUNS = {
    "translation": Run("translation", PAIRS, WRITER, sections="[decoding]\nbeam = 2\n"),
    "muon": Run("translation", PAIRS, WRITER, 'optimiser = "muon"\n', sections=GREEDY),
    "classification": Run("classification", LABELS, ENCODER),
    "tagging-crf": Run("tagging", TAGS, ENCODER, sections="[tagging]\ncrf = true\n"),
    "language-model": Run(
        "language-model",
        TEXTS,
        ENCODER + 'activation = "gated_gelu"\n',
        'optimiser = "adamw"\nweight_decay = 0.1\nema = 0.9\n',
        product="bf16",
        sections=GREEDY,
    ),
    "masked-words": Run("masked-lm", TEXTS, ENCODER),
    "spans": Run(
        "text-to-text",
        TEXTS,
        WRITER + 'positions = "relative"\nnorm = "rms"\nnorm_place = "pre"\nbiases = false\n',
        sections=GREEDY + "[text_to_text]\nspans = true\n",
    ),
    "text-to-text": Run("text-to-text", "--train prefixed.tsv", WRITER + 'tie = "none"\n', sections=GREEDY),
    "text-to-text-bpe-dropout": Run(
        "text-to-text",
        "--train prefixed.tsv",
        WRITER,
        text="vocabulary = 350\nbpe_dropout = 0.2\nsegmentations = 8\n",
        sections=GREEDY,
    ),
    "images": Run(
        "image-classification",
        IMAGES,
        "layers = 2\nheight = 8\nwidth = 8\nchannels = 1\npatch = 2\nd_model = 32\nd_ff = 64\nheads = 4\n",
        tokens=272,  # 16 images of 16 patches and their class tokens
        text=None,
        sections="[images]\nshift = 1\nwarp = 0.1\n",
    ),
    "recurrent-translation": Run(
        "translation",
        PAIRS,
        'family = "rnn"\ncell = "gru"\nscore = "additive"\ninput_feeding = true\nd_model = 32\n',
        tokens=128,
        sections=GREEDY,
    ),
    "recurrent-classification": Run(
        "classification",
        LABELS,
        'family = "rnn-encoder"\ncell = "lstm"\npool = "attention"\nd_model = 32\n',
        sections='[classification]\nclass_weights = "balanced"\n',
    ),
    "batch-norm": Run(
        "translation",
        PAIRS,
        WRITER + 'norm = "batch"\ndecoder_norm = "layer"\n',
        "accumulate = 2\n",
        tokens=128,
        sections=GREEDY,
    ),
    "bpe-dropout": Run(
        "translation",
        PAIRS,
        WRITER + 'tie = "two"\n',
        text="vocabulary = 350\njoint = false\nbpe_dropout = 0.2\nsegmentations = 8\n",
        sections=GREEDY,
    ),
    "adversarial": Run(
        "classification", LABELS, ENCODER + 'pool = "mean"\n', sections="[classification]\nadversarial = 1.0\n"
    ),
}
"""What is trained, by name; every run has something of its own beside what its name says."""


class Language:
    """Invented words and what becomes of them: sentences, their translation, a label, tags."""

    kinds = ("bird", "stone", "river")
    names = ("PER", "LOC")

    def __init__(self, seed: int) -> None:
        self.draws = random.Random(seed)
        self.words = [self._word(2) for _ in range(60)]
        self.translated = {word: self._word(3) for word in self.words}
        self.signs = {kind: [self._word(3) for _ in range(4)] for kind in self.kinds}
        self.called = {name: [self._word(2).capitalize() for _ in range(12)] for name in self.names}

    def below(self, count: int) -> int:
        """A whole number from 0 to ``count - 1``."""
        return int(self.draws.random() * count)

    def one(self, among: list[str] | tuple[str, ...]) -> str:
        """One of these."""
        return among[self.below(len(among))]

    def _word(self, syllables: int) -> str:
        return "".join(self.one(tuple("bdfgklmnprstvz")) + self.one(tuple("aeiou")) for _ in range(syllables))

    def sentence(self) -> list[str]:
        """Three to nine words."""
        return [self.one(self.words) for _ in range(3 + self.below(7))]

    def pair(self) -> tuple[str, str]:
        """A sentence and its translation: word for word, every two of them in the other order."""
        words = self.sentence()
        theirs = [self.translated[word] for word in words]
        swapped = [word for at in range(0, len(theirs), 2) for word in reversed(theirs[at : at + 2])]
        return " ".join(words), " ".join(swapped)

    def labelled(self) -> tuple[str, str]:
        """A text with one word that tells its label, and the label."""
        words, kind = self.sentence(), self.one(self.kinds)
        words.insert(self.below(len(words) + 1), self.one(self.signs[kind]))
        return " ".join(words), kind

    def tagged(self) -> Iterator[tuple[str, str]]:
        """Words and their tags; some words are names, of one or two parts."""
        for word in self.sentence():
            yield word, "O"
            if self.below(3) == 0:
                name = self.one(self.names)
                yield self.one(self.called[name]), f"B-{name}"
                if self.below(2):
                    yield self.one(self.called[name]), f"I-{name}"

    def image(self) -> tuple[list[int], str]:
        """An image of 8 x 8 grey pixels: a bar that lies or stands, or a block, in noise."""
        kind, row, column = self.one(("lying", "standing", "block")), 1 + self.below(4), 1 + self.below(4)
        height, width = {"lying": (1, 6), "standing": (6, 1), "block": (3, 3)}[kind]
        pixels = [self.below(64) for _ in range(64)]
        for y in range(row, min(8, row + height)):
            for x in range(column, min(8, column + width)):
                pixels[8 * y + x] = 192 + self.below(64)
        return pixels, kind


def write_data(folder: Path) -> None:
    """Make the files that :data:`RUNS` learn from, the same every time."""
    language = Language(SEED)
    pairs = [language.pair() for _ in range(400)]
    _write(folder / "pairs.en", [source for source, _ in pairs])
    _write(folder / "pairs.de", [target for _, target in pairs])
    both = (row for source, target in pairs for row in (f"to\t{source}\t{target}", f"from\t{target}\t{source}"))
    _write(folder / "prefixed.tsv", ["prefix\tsource\ttarget", *both])
    labels = [language.labelled() for _ in range(300)]
    _write(folder / "labels.csv", ["text,label", *(f"{text},{label}" for text, label in labels)])
    sentences = [[f"{word}\t{tag}" for word, tag in language.tagged()] for _ in range(200)]
    _write(folder / "tags.conll", ["\n".join(lines) + "\n" for lines in sentences])
    texts = [" ".join(language.sentence()).capitalize() + "." for _ in range(1200)]
    _write(folder / "texts.txt", [" ".join(texts[at : at + 6]) for at in range(0, len(texts), 6)])
    images = [language.image() for _ in range(240)]
    header = ",".join([*(f"pixel{number}" for number in range(64)), "label"])
    _write(folder / "images.csv", [header, *(",".join([*map(str, pixels), label]) for pixels, label in images)])


def _write(path: Path, lines: list[str]) -> None:
    path.write_text("\n".join(lines) + "\n", encoding="utf-8", newline="\n")


def train(name: str, folder: Path) -> Path:
    """Make a run in the folder of the data; its model folder. What it says is shown only if it fails."""
    run = RUNS[name]
    (folder / f"{name}.toml").write_text(run.recipe, encoding="utf-8")
    asked = f"train --task {run.task} {run.files} --recipe {name}.toml --output {name} --threads 1 --device cpu"
    paths = [str(ROOT / "src"), *filter(None, [os.environ.get("PYTHONPATH")])]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(paths), "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-m", "regard", *asked.split()]
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"{name}: regard {asked}\nended with {done.returncode}:\n{done.stderr}")
    tokens = _resolved(folder / name)["chosen"]["tokens"]
    if tokens != run.tokens:
        sys.exit(f"{name}: the free memory made batches of {tokens} tokens from {run.tokens}; try again with more")
    return folder / name


def old_name(name: str) -> str:
    """What a tensor was called before :data:`RENAMED`."""
    for old, new in RENAMED.items():
        if name == new or name.startswith(f"{new}."):
            return old + name[len(new) :]
    return name


def weights_sum(model: Path) -> str:
    """The sha256 of a model's weights by value: of each, in order of their old names, name, type, shape and bytes."""
    tensors = {
        old_name(name): tensor for name, tensor in safetensors.numpy.load_file(model / "model.safetensors").items()
    }
    found = hashlib.sha256()
    for name in sorted(tensors):
        tensor = tensors[name]
        found.update(f"{name} {tensor.dtype.str} {tensor.shape}\n".encode())
        found.update(tensor.tobytes())
    return found.hexdigest()


def data_sum(model: Path) -> str:
    """The sha256 of a run's prepared data: its shards and the values of its index, in order of their names."""
    folder = model / "training" / "data"
    found = hashlib.sha256()
    for path in sorted(path for path in folder.rglob("*") if path.is_file()):
        found.update(f"{path.relative_to(folder).as_posix()}\n".encode())
        content = path.read_bytes()
        if path.name == "index.json":  # the order of its keys, and so its own sha256, may change
            index = {name: value for name, value in json.loads(content).items() if name != "sha256"}
            content = json.dumps(index, sort_keys=True).encode()
        found.update(hashlib.sha256(content).digest())
    return found.hexdigest()


def machine(model: Path) -> str:
    """What the sums hold on, as a run wrote it down: the processor, torch, the path of full precision."""
    found = _resolved(model)
    return f"# {found['fingerprint']['processor']}, torch {found['fingerprint']['torch']}, {found['chosen']['exact']}"


def _resolved(model: Path) -> dict[str, Any]:
    return tomllib.loads((model / "training" / "resolved.toml").read_text(encoding="utf-8"))


def sums(names: list[str]) -> Iterator[tuple[str, str]]:
    """Make the runs, in a temporary folder: of each its name and line; first the machine's, whose name is empty."""
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        write_data(folder)
        for name in names:
            model = train(name, folder)
            if name == names[0]:
                yield "", machine(model)
            yield name, f"{name} {weights_sum(model)} {data_sum(model)}"


def differences(found: dict[str, str], expected: dict[str, str]) -> list[str]:
    """What is not as expected, a sentence each."""
    said = []
    for name, line in found.items():
        if name not in expected:
            said.append(f"{name}: is not in the file")
        elif line != expected[name]:
            theirs = expected[name].split()
            parts = zip(("name", "weights", "data"), line.split(), theirs, strict=False)
            said.append(f"{name}: other {' and '.join(what for what, one, other in parts if one != other)}")
    return said


def main() -> None:
    """Make the runs, print their lines, and compare."""
    parser = argparse.ArgumentParser(description="sha256 of the weights and the data of short training runs")
    parser.add_argument("--expect", type=Path, metavar="FILE", help="compare with these lines; exit 1 if any differs")
    parser.add_argument("--only", nargs="+", choices=list(RUNS), default=list(RUNS), metavar="NAME", help="these runs")
    asked = parser.parse_args()
    expected = asked.expect.read_text(encoding="utf-8").splitlines() if asked.expect else []
    found = {}
    for name, line in sums(asked.only):
        print(line, flush=True)
        found[name] = line
    if not asked.expect:
        return
    made_on = found.pop("")
    if made_on not in expected:
        print(f"{asked.expect} is not of this machine: {made_on[2:]}", file=sys.stderr)
    known = {line.split()[0]: line for line in expected if line.strip() and not line.startswith("#")}
    said = differences(found, known)
    print("\n".join(said) or f"all {len(found)} as expected", file=sys.stderr)
    sys.exit(1 if said else 0)


if __name__ == "__main__":
    main()
