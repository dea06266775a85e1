"""Small random models of ``transformers``, and ours with the same weights."""

import copy
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any
from unittest.mock import patch

import pytest
import torch
from torch import Tensor, nn

from regard.config import FAMILIES, GptSection, TransformerSection, VitSection
from regard.models import build
from regard.models.inputs import Tokens
from regard.nn.layout import Sequences
from regard.runs.convert.hub import Fields
from regard.runs.convert.layouts.format import inward

os.environ.update(HF_HUB_DISABLE_PROGRESS_BARS="1", TRANSFORMERS_VERBOSITY="error")  # before it is loaded
transformers = pytest.importorskip("transformers")
transformers.utils.logging.set_verbosity_error()
transformers.utils.logging.disable_progress_bar()

PIECES, COUNT = 29, 5
LENGTHS = [5, 1, 9, 4]
HIDDEN = {"hidden_size": 12, "num_hidden_layers": 2, "num_attention_heads": 3, "intermediate_size": 20}
BERT: dict[str, Any] = {**HIDDEN, "vocab_size": PIECES, "max_position_embeddings": 16, "num_labels": COUNT}
VIT: dict[str, Any] = {**HIDDEN, "image_size": [8, 12], "patch_size": 4, "num_channels": 2, "num_labels": COUNT}
GPT2: dict[str, Any] = {"vocab_size": PIECES, "n_embd": 12, "n_layer": 2, "n_head": 3, "n_positions": 16}
GPT2 |= {"bos_token_id": 0, "eos_token_id": 0}
T5: dict[str, Any] = {"vocab_size": PIECES, "d_model": 12, "d_kv": 5, "d_ff": 20, "num_layers": 2, "num_heads": 3}
T5 |= {"num_decoder_layers": 3, "decoder_start_token_id": 0}
T5 |= {"relative_attention_num_buckets": 8, "relative_attention_max_distance": 16}
BART: dict[str, Any] = {"vocab_size": PIECES, "d_model": 12, "encoder_layers": 2, "decoder_layers": 3}
BART |= dict.fromkeys(("encoder_ffn_dim", "decoder_ffn_dim"), 20) | {"max_position_embeddings": 24}
BART |= dict.fromkeys(("encoder_attention_heads", "decoder_attention_heads"), 3)
LAST = {"pad_token_id": PIECES - 1, "decoder_start_token_id": PIECES - 1, "decoder_vocab_size": PIECES}
TRANSLATORS: dict[str, tuple[str, dict[str, Any]]] = {
    "relu": ("Marian", {**LAST, "activation_function": "relu"}),
    "swish": ("Marian", {**LAST, "activation_function": "swish", "scale_embedding": True}),
    "separate": ("Marian", {**LAST, "activation_function": "swish", "share_encoder_decoder_embeddings": False}),
    "untied": (
        "Marian",
        {
            **LAST,
            "activation_function": "gelu",
            "share_encoder_decoder_embeddings": False,
            "tie_word_embeddings": False,
        },
    ),
    "m2m": ("M2M100", {"activation_function": "relu", "scale_embedding": True, "decoder_start_token_id": 2}),
    "mbart": ("MBart", {"scale_embedding": True, "decoder_start_token_id": 2}),
}
"""Class and settings of translators, by what is special in them."""
OFFSET = {"type_vocab_size": 1, "pad_token_id": 1}
ENCODERS: dict[str, dict[str, Any]] = {
    "Bert": BERT,
    **{name: {**BERT, **OFFSET} for name in ("Roberta", "XLMRoberta", "Camembert")},
    "DistilBert": {
        "max_position_embeddings": 16,
        "vocab_size": PIECES,
        "num_labels": COUNT,
        "dim": 12,
        "n_layers": 2,
        "n_heads": 3,
        "hidden_dim": 20,
    },
}
"""Settings of encoders, by the beginning of their classes' names."""
BERTS = {"MaskedLM": "masked-lm", "SequenceClassification": "classification", "TokenClassification": "tagging"}
"""Our tasks by the head of a BERT."""
AUTO = {f"{task}": f"AutoModelFor{head}" for head, task in BERTS.items()} | {
    **dict.fromkeys(("translation", "text-to-text"), "AutoModelForSeq2SeqLM"),
    "sentence-pairs": "AutoModelForSequenceClassification",
    "language-model": "AutoModelForCausalLM",
    "image-classification": "AutoModelForImageClassification",
    "encoding": "AutoModel",
}
"""How their library loads a model of a task."""


def theirs(kind: str, config: Any, spread: float = 0.2, dtype: torch.dtype = torch.float64) -> Any:
    """A model of theirs in evaluation mode, every weight moved at random, so that no bias or gain hides."""
    model = getattr(transformers, kind)._from_config(config, attn_implementation="eager")
    generator = torch.Generator().manual_seed(11)
    with torch.no_grad():
        for weight in model.parameters():
            weight.add_(spread * torch.randn(weight.shape, generator=generator).to(weight))
    return model.to(dtype).eval()


def saved(model: Any, folder: Any) -> dict[str, Tensor]:
    """The tensors as the model writes them to a file, under the file's names."""
    from safetensors.torch import load_file

    model.save_pretrained(folder)
    return load_file(folder / "model.safetensors")


def saved_gradients(model: Any, folder: Any) -> dict[str, Tensor]:
    """The same of its gradients."""
    twin = copy.deepcopy(model)
    with torch.no_grad():
        for of_twin, own in zip(twin.parameters(), model.parameters(), strict=True):
            of_twin.copy_(torch.zeros_like(own) if own.grad is None else own.grad)
    return saved(twin, folder)


def ours(format: Any, task: str, config: Any, tensors: Mapping[str, Tensor], dtype: torch.dtype) -> tuple[Any, Any]:
    """Our model with these weights, and the table of names by which they came."""
    fields = Fields(config.to_dict(), "test")
    values = format.section(fields, tensors)
    section = FAMILIES[values["family"]](**values)
    start = format.start_row(fields, Fields({}, "test"))
    table = format.rows(section, task, start)
    model = _built(section, task, PIECES - (start is None))
    fill(model, inward(table, tensors, "test"))
    return model.to(dtype).eval(), table


def _built(section: Any, task: str, pieces: int) -> nn.Module:
    if isinstance(section, TransformerSection):
        return build.transformer(section, pieces, pieces)
    if isinstance(section, GptSection):
        return build.gpt(section, PIECES)
    if isinstance(section, VitSection):
        return build.vit(section, COUNT)
    heads = {"masked-lm": build.words(section), "tagging": build.tags(section, COUNT)}
    return build.bert(section, PIECES, heads.get(task, build.classes(section, COUNT)))


def fill(model: nn.Module, weights: Mapping[str, Tensor]) -> None:
    """Every weight from the file, and none left over."""
    model.double()
    parameters = dict(model.named_parameters())
    assert parameters.keys() == weights.keys()
    with torch.no_grad():
        for name, weight in weights.items():
            parameters[name].copy_(weight)


def ids(lengths: Sequence[int], seed: int = 0, first: int | None = None) -> list[Tensor]:
    """Random ids of each length; ``first`` begins each."""
    generator = torch.Generator().manual_seed(seed)
    drawn = [torch.randint(2, PIECES, (length,), generator=generator) for length in lengths]
    return drawn if first is None else [torch.cat([torch.tensor([first]), each[:-1]]) for each in drawn]


def packed(texts: Sequence[Tensor], segments: Sequence[Tensor] | None = None) -> Tokens:
    sequences = Sequences.end_to_end([len(text) for text in texts])
    return Tokens(torch.cat(list(texts)), sequences, torch.cat(list(segments)) if segments else None)


def framed(tokenizer: Any, texts: list[str]) -> list[Tensor]:
    return [torch.tensor([*tokenizer.begin, *tokenizer.encode(text).ids, tokenizer.end]) for text in texts]


def padded(texts: Sequence[Tensor], value: int = 3) -> tuple[Tensor, Tensor]:
    """``ids_BL`` filled up with a real piece, so that a mask that does not hold is noticed, and the mask."""
    mask = nn.utils.rnn.pad_sequence([torch.ones_like(text) for text in texts], batch_first=True)
    return nn.utils.rnn.pad_sequence(list(texts), batch_first=True, padding_value=value), mask


def unpadded(values: Tensor, texts: Sequence[Tensor]) -> Tensor:
    return torch.cat([values[place, : len(text)] for place, text in enumerate(texts)])


def pixels(images: Tensor, patch: int) -> Tensor:
    """Each image's patches, row by row, each as (channel, row, column), behind a row of zeros for the class token."""
    rows = []
    for image in images:
        rows.append(torch.zeros(image.shape[0] * patch * patch, dtype=image.dtype))
        for top in range(0, image.shape[1], patch):
            for left in range(0, image.shape[2], patch):
                rows.append(image[:, top : top + patch, left : left + patch].flatten())
    return torch.stack(rows)


@contextmanager
def exact() -> Iterator[None]:
    """Their models in float64 all through: two parts of them round to float32 on the way."""
    from transformers.models.bert import modeling_bert
    from transformers.models.t5.modeling_t5 import T5LayerNorm
    from transformers.models.vit import modeling_vit

    def norm(self: Any, x: Tensor) -> Tensor:
        return self.weight * (x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + self.variance_epsilon))

    with ExitStack() as stack:
        stack.enter_context(patch.object(T5LayerNorm, "forward", norm))
        eager = modeling_bert.eager_attention_forward
        stack.enter_context(patch.object(modeling_vit, "eager_attention_forward", eager))
        yield
