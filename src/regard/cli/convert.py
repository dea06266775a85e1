"""``regard import`` and ``regard export``: conversion from and to Hugging Face's layout, and to CTranslate2."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from cyclopts import Parameter

USES = {
    "translation": "regard translate {} < texts.txt",
    "classification": "regard classify {} < texts.txt",
    "tagging": "regard tag {} < texts.txt",
    "language-model": "regard generate {}",
    "masked-lm": 'echo "The [MASK] sleeps." | regard fill {}',
    "span-corruption": 'echo "The [MASK] sleeps." | regard fill {}',
    "image-classification": "regard classify {} < images.csv",
    "encoding": "regard encode {} < texts.txt",
}
"""Commands that work on an imported model, by task."""


def import_(
    folder: Annotated[Path, Parameter(name="HF_DIR")],
    output: Annotated[Path, Parameter(name="OUTPUT")],
    /,
) -> int:
    """Bring in a model: BERT, GPT-2, T5 or ViT from a folder in Hugging Face's layout, with tokenizer and labels.

    All that regard export writes is read again, translators (Marian, Pegasus, T5) too. What is computed stays the same;
    a model that would not be the same here is refused, and what does not fit is named. Weights are read from
    model.safetensors alone, never from pickle, and nothing is downloaded. What came in is used as it is, or begun from:
    regard train --task classification --train FILE --from OUTPUT --output DIR.

    Args:
        folder: holds config.json, model.safetensors and the tokenizer's files.
        output: the model folder to make.
    """
    from regard.cli.io.terminal import result
    from regard.runs.conversion import import_model

    task = import_model(folder, output)
    use = USES.get(task.name, "regard info {}").format(output)
    result(f"The model is in {output}, for the task {task.name}. To use it:\n\n  {use}\n")
    return 0


def export(
    folder: Annotated[Path, Parameter(name="DIR")],
    output: Annotated[Path, Parameter(name="OUTPUT")],
    /,
    *,
    to: Literal["huggingface", "ctranslate2"] = "huggingface",
) -> int:
    """Take a model out: into a folder that transformers reads, or CTranslate2.

    A translator becomes a Marian or, with pre-norm, a Pegasus; an encoder a BERT with its head; a language model a
    GPT-2; a model like T5 a T5; one of images a ViT. A model that would not be the same there is refused, and the
    recipe's fields for which there is no form are named: regard train says them before it begins, regard info for a
    model that is there. What was written for transformers, regard import reads again.

    Args:
        folder: the model folder.
        output: the folder to make.
        to: huggingface: config.json, model.safetensors and the tokenizer's files; ctranslate2: by its own converter
            (needs the packages ctranslate2 and transformers).
    """
    from regard.cli.io.terminal import result, say
    from regard.runs.conversion import export_model

    for left in export_model(folder, output, to):
        say(left)
    result(f"The model is in {output}.")
    return 0
