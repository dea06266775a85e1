"""Export: a translator as a folder that CTranslate2 reads, its tensors as they are, without CTranslate2 itself."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping

import torch
from torch import Tensor

from regard.config import Recipe, TransformerSection
from regard.nn.positions import TimingSignal, sinusoids
from regard.runs.convert.ctranslate2_file import model_file
from regard.runs.convert.hub import CONFIG, OF_CTRANSLATE2
from regard.runs.convert.layouts import ctranslate2 as layout
from regard.runs.convert.layouts.format import TABLES, outward, sides
from regard.runs.convert.layouts.marian import ROOM
from regard.runs.convert.side_files import FILE, as_json, tokenizer_contents
from regard.runs.convert.translator_files import SOURCE_MODEL, TARGET_MODEL
from regard.text.tokenizers.vocabulary import AnyTokenizer, Vocabularies


def ctranslate2_files(
    recipe: Recipe, weights: Mapping[str, Tensor], vocabularies: Vocabularies
) -> dict[str, Iterable[bytes]]:
    """The files of a folder, by name; a recipe without ``layout.obstacles``.

    Raises:
        RegardError: a weight is not finite.
    """
    model = recipe.model
    assert isinstance(model, TransformerSection)
    names = [_names(one) for one in (vocabularies.source, vocabularies.target)]
    variables = outward(layout.rows(model, layout.SOURCES[-1]), weights)
    table = weights[TABLES[model.tie != "three"]]
    start = _start(variables, table[-1], names[1], vocabularies.target.end, shared=model.tie)
    variables |= _attributes(model, start is None) | _positions(recipe, model)
    aliases = _aliases(variables)
    frame = vocabularies.frame
    config = {
        "add_source_bos": bool(frame.before),
        "add_source_eos": frame.ended,
        "bos_token": names[0][frame.before[0]] if frame.before else "<s>",
        "eos_token": names[1][vocabularies.target.end],
        "unk_token": names[1][vocabularies.target.unknown],
        "decoder_start_token": names[1][vocabularies.target.end if start is None else start],
        "layer_norm_epsilon": model.norm_epsilon,
        "multi_query_attention": False,
    }
    tables = {"shared": names[0]} if names[0] == names[1] else {"source": names[0], "target": names[1]}
    return {
        OF_CTRANSLATE2: model_file("TransformerSpec", layout.LAST, variables, aliases),
        CONFIG: [as_json(config)],
        **{f"{side}_vocabulary.json": [as_json(tokens)] for side, tokens in tables.items()},
        **{name: [content] for name, content in _tokenizers(recipe, vocabularies).items()},
    }


def _names(tokenizer: AnyTokenizer) -> list[str]:
    """A name for every id; rows without one get their number's."""
    return [name or f"<unused_{id}>" for id, name in enumerate(tokenizer.names)]


def _start(variables: dict[str, Tensor], row_D: Tensor, names: list[str], end: int, shared: str) -> int | None:
    """The token that starts a translation there: one that has the row of our start symbol; ``None`` where it is zero.

    Where training has changed the token's row, the table that is read gets the start symbol's in its place, and what it
    was shared with stays a table of its own.
    """
    if not row_D.any():
        return None
    table_VD = variables[layout.TARGET]
    equal = (table_VD == row_D).all(1).nonzero()[:, 0].tolist()
    if equal:
        return int(equal[0])
    start = names.index("<s>") if "<s>" in names else end
    if shared != "none":
        variables[layout.OUTPUT] = table_VD
    if shared == "three":
        variables[layout.SOURCES[-1]] = table_VD
    variables[layout.TARGET] = table_VD.index_copy(0, torch.tensor([start]), row_D[None])
    return start


def _aliases(variables: dict[str, Tensor]) -> dict[str, str]:
    """Names of the tables that are left out, to the first of the same numbers."""
    found = {}
    for name, others in ((layout.OUTPUT, (layout.TARGET,)), (layout.SOURCES[-1], (layout.TARGET, layout.OUTPUT))):
        for other in others:
            if other not in variables or name in found:
                continue
            if name not in variables or torch.equal(variables[name], variables[other]):
                variables.pop(name, None)
                found[name] = other
    return found


def _attributes(model: TransformerSection, zero: bool) -> dict[str, Tensor]:
    """The attributes of both sides; ``zero``: the decoder starts with zeros."""
    code = next(code for code, ours in layout.ACTIVATIONS.items() if ours == model.activation)
    both = {"activation": code, "pre_norm": model.norm_place == "pre", "scale_embeddings": model.scale_embedding}
    both["embeddings_merge"] = 0
    flags = {f"{side}/{name}": value for side in layout.SIDES for name, value in both.items()}
    flags |= {"decoder/start_from_zero_embedding": zero, "decoder/alibi": False}
    counts = {"encoder/num_heads": model.heads, "decoder/num_heads": model.decoder.heads}
    counts |= {"decoder/alignment_layer": -1, "decoder/alignment_heads": 1}
    found = {name: torch.tensor(value, dtype=torch.int8) for name, value in flags.items()}
    return found | {name: torch.tensor(value, dtype=torch.int16) for name, value in counts.items()}


def _positions(recipe: Recipe, model: TransformerSection) -> dict[str, Tensor]:
    """The table of positions, where neither CTranslate2 nor the weights have one; of relative ones the farthest."""
    if model.positions == "relative":
        layers = [f"{side}/layer_{layer}" for side, count, _ in sides(model) for layer in range(count)]
        reach = torch.tensor(model.relative_distance, dtype=torch.int32)
        return {f"{layer}/self_attention/{layout.FARTHEST}": reach for layer in layers}
    longest = max(ROOM, recipe.data.max_tokens + recipe.decoding.max_extra + 1)
    if model.positions == "sinusoidal":
        table = sinusoids(longest, model.d_model)
    elif model.positions == "timing_signal" and model.first_position != 1:
        table = TimingSignal(model.d_model, model.first_position, longest).table_SD
    else:
        return {}
    return {layout.PLACES.format(side): table for side in layout.SIDES}


def _tokenizers(recipe: Recipe, vocabularies: Vocabularies) -> dict[str, bytes]:
    """The files by which texts become tokens; none where tokens are words."""
    source, target = vocabularies.source, vocabularies.target
    if source.model is not None and target.model is not None:
        return {SOURCE_MODEL: source.model, TARGET_MODEL: target.model}
    if not vocabularies.joint or json.loads(source.content)["model"]["type"] == "WordLevel":
        return {}
    files = tokenizer_contents(source, recipe.data.max_tokens, framed=False, pad=False, text=recipe.text)
    return files | {FILE: as_json({**json.loads(files[FILE]), "post_processor": None})}
