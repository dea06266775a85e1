"""Same weights, same numbers as torch's own stacks: hidden states and gradients, both norm places."""

import copy

import pytest
import torch
from torch import nn

from regard.models.transformer import Transformer
from regard.nn.layout import Sequences
from tests.models.small_models import assert_near, section, small, some_pairs, tolerance

LENGTHS = [(5, 3), (1, 6), (7, 1), (4, 4)]


def torchs(model: Transformer, choices) -> tuple[nn.TransformerEncoder, nn.TransformerDecoder]:
    sizes = (choices.d_model, choices.heads, choices.d_ff, 0.0, choices.activation)
    options = {"batch_first": True, "norm_first": choices.norm_place == "pre", "dtype": torch.float64}
    final = [nn.LayerNorm(choices.d_model, dtype=torch.float64) if options["norm_first"] else None for _ in range(2)]
    encoder = nn.TransformerEncoder(
        nn.TransformerEncoderLayer(*sizes, **options), choices.encoder_layers, final[0], enable_nested_tensor=False
    )
    decoder = nn.TransformerDecoder(nn.TransformerDecoderLayer(*sizes, **options), choices.decoder_layers, final[1])
    with torch.no_grad():
        for theirs, ours in ((encoder, model.encoder), (decoder, model.decoder)):
            for name, tensors in pieces(theirs, ours):
                dict(theirs.named_parameters())[name].copy_(torch.cat(tensors))
    return encoder, decoder


def pieces(theirs: nn.Module, ours: nn.Module, gradients: bool = False):
    """Each of torch's names with our tensors, side by side, that make it up."""
    for name, _ in theirs.named_parameters():
        renamed = name.replace("norm.", "final.") if name.startswith("norm.") else name
        for old, new in NAMES + (DECODER_NORMS if isinstance(theirs, nn.TransformerDecoder) else ENCODER_NORMS):
            renamed = renamed.replace(old, new)
        found = []
        for part in ("query", "key", "value") if "in_proj" in name else ("",):
            parameter = ours.get_parameter(renamed.replace("?", part))
            found.append(parameter.grad if gradients else parameter)
        yield name, found


NAMES = [("multihead_attn", "cross"), ("self_attn", "attention"), ("in_proj_", "?."), ("out_proj", "output")]
NAMES += [("linear1", "feedforward.inner"), ("linear2", "feedforward.outer")]
ENCODER_NORMS = [("norm1", "attention_residual.norm"), ("norm2", "feedforward_residual.norm")]
DECODER_NORMS = [ENCODER_NORMS[0], ("norm2", "cross_residual.norm"), ("norm3", "feedforward_residual.norm")]


def padded(x_TD: torch.Tensor, of: Sequences) -> torch.Tensor:
    parts = x_TD.split(of.lengths_B.tolist())
    return nn.utils.rnn.pad_sequence(parts, batch_first=True)


def packed(x_BLD: torch.Tensor, of: Sequences) -> torch.Tensor:
    return torch.cat([x_BLD[b, :length] for b, length in enumerate(of.lengths_B.tolist())])


@pytest.mark.one_of(2)
@pytest.mark.parametrize("place", ["post", "pre"])
@pytest.mark.parametrize("activation", ["relu", "gelu"])
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
def test_hidden_states_and_gradients_are_torchs(place: str, activation: str, dtype: torch.dtype) -> None:
    choices = section(norm_place=place, activation=activation)
    model = small(choices, dtype=dtype)
    exact = copy.deepcopy(model).double()  # torch's side embeds with these
    encoder, decoder = torchs(exact, choices)
    given = some_pairs(LENGTHS)
    source, target = given.source.sequences, given.target.sequences

    memory_SD = model.encoder(given.source)
    hidden_TD = model.decoder(given.target, memory_SD, given.source)
    away_BM = ~source.real_BL
    theirs_memory = encoder(
        padded(exact.encoder.input(given.source.ids_T, source.positions_T, source.longest), source),
        src_key_padding_mask=away_BM,
    )
    theirs_hidden = decoder(
        padded(exact.decoder.input(given.target.ids_T, target.positions_T, target.longest), target),
        theirs_memory,
        tgt_mask=torch.ones(target.longest, target.longest, dtype=torch.bool).triu(1),
        tgt_key_padding_mask=~target.real_BL,
        memory_key_padding_mask=away_BM,
    )
    most = tolerance(dtype)
    assert_near(memory_SD, packed(theirs_memory, source), most, "memory")
    assert_near(hidden_TD, packed(theirs_hidden, target), most, "hidden")

    direction_TD = torch.randn(hidden_TD.shape, dtype=torch.float64)
    (hidden_TD * direction_TD.to(dtype)).sum().backward()
    (packed(theirs_hidden, target) * direction_TD).sum().backward()
    for theirs, ours in ((encoder, model.encoder), (decoder, model.decoder)):
        largest = max(p.grad.abs().max() for p in theirs.parameters())
        for name, found in pieces(theirs, ours, gradients=True):
            expected = dict(theirs.named_parameters())[name].grad
            scale = max(float(largest / expected.abs().max()), 1.0) if "bias" in name else 1.0  # a key bias has none
            assert_near(torch.cat(found), expected, most * scale, name)
    assert_near(model.output.weight.grad, exact.output.weight.grad, most, "embedding")
