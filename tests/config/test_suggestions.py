"""An unknown word is answered with the known one that was meant, and with none where nothing is like it."""

import pytest

from regard.cli import COMMANDS, NO_NEGATIVES, app
from regard.config import BUILT, did_you_mean, known_keys, nearest
from regard.config.reading import _OURS
from regard.models.presets import PRESETS

TRAIN = [
    name
    for argument in app["train"].assemble_argument_collection(default_parameter=NO_NEGATIVES)
    for name in argument.names
]
NAMES = [command.__name__.rstrip("_") for command in COMMANDS]


MEANT = {
    "options": (
        TRAIN,
        "--sorce --source, --minuts --minutes, --max-steps --steps, --out --output, --src --source, "
        "--train-file --train, --no-resume --resume, --gpu --device, --dev --valid",
        "--lr --batch --data --name --zzz --verbose --dropout --test",
    ),
    "commands": (
        NAMES,
        "trian train, eval evaluate, tran train, translator translate, embed encode",
        "run ls serve list mask",
    ),
    "tasks": (
        BUILT,
        "lm language-model, langauge language-model, ner tagging, mlm masked-lm, t5 span-corruption, "
        "image image-classification, translate translation, Classification classification",
        "cat",
    ),
    "presets": (PRESETS, "bert bert-tiny, t5 t5-tiny, tinny tiny, medium gpt2-medium", "transformer"),
    "keys": (
        known_keys(),
        "d_model model.d_model, model.dmodel model.d_model, modle.heads model.heads, training.lr training.rate, "
        "learning_rate training.rate, batch_size training.tokens, training.warmup_steps training.warmup, "
        "model.vocab_size text.vocabulary, data.max_length data.max_tokens, decoding.length decoding.length_penalty, "
        "masking.rate masking.share",
        "model.foo training.foo masking.p x.y classification.labels",
    ),
}
"""What is known; words, each with the one it means; and words that mean none of them."""


@pytest.mark.parametrize("kind", MEANT)
def test_the_word_that_was_meant(kind: str) -> None:
    known, meant, strange = MEANT[kind]
    expected = dict(pair.split() for pair in meant.split(", ")) | dict.fromkeys(strange.split())
    assert {word: did_you_mean(word, known) for word in expected} == expected


def test_the_sentence_is_empty_where_nothing_is_meant() -> None:
    assert nearest("trian", NAMES) == " Did you mean 'train'?"
    assert nearest("xyzzy", NAMES) == nearest("x", []) == ""


def test_what_is_called_otherwise_elsewhere_is_something_of_ours() -> None:
    options = {
        name.strip("-").replace("-", "_")
        for command in app
        if not command.startswith("-")
        for argument in app[command].assemble_argument_collection(default_parameter=NO_NEGATIVES)
        for name in argument.names
    }
    known = {*options, *NAMES, *BUILT, *(key.rpartition(".")[2] for key in known_keys()), "help"}
    assert set(_OURS) <= known
    for ours, words in _OURS.items():
        assert ours not in words.split()
