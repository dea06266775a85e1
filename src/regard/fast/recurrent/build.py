"""From the section and weights of a recurrent model to its parts; ``readers.build`` goes on with heads."""

from __future__ import annotations

from regard.config import RnnEncoderSection, RnnSection
from regard.fast.answer import Output
from regard.fast.build import Take, tables
from regard.fast.parts import Linear
from regard.fast.recurrent.alignment import Additive, Alignment, Cosine, Dot
from regard.fast.recurrent.cells import CELLS
from regard.fast.recurrent.layers import Layer
from regard.fast.recurrent.rnn import FastRnn, RecurrentStack
from regard.kernels.packing import FP32, Packer


def rnn(section: RnnSection, source_pieces: int, target_pieces: int, take: Take, pack: Packer = FP32) -> FastRnn:
    """The engine of a recurrent encoder-decoder; all products but those of what is carried are in the precision."""
    source, target, output = tables(section, source_pieces, target_pieces, take)
    size, fed = section.d_model, section.d_model * (1 + section.input_feeding)
    directions = 2 if section.two_way else 1
    reading = recurrent_layers(section, "encoder.stack", section.encoder_layers, size, directions, take, pack)
    writing = recurrent_layers(section, "decoder.stack", section.decoder_layers, fed, 1, take, pack)
    state = writing[0].cell.states * size
    return FastRnn(
        RecurrentStack(source, reading),
        linear("decoder.bridge.project", len(writing) * state, state, take, pack),
        RecurrentStack(target, writing),
        None if section.score == "none" else _alignment(section, take, pack),
        section.input_feeding,
        Output(output[:-1], pack),
    )


def _alignment(section: RnnSection, take: Take, pack: Packer) -> Alignment:
    size, name = section.d_model, "decoder.cross.score"
    score: Dot | Additive = Dot(1 / section.divisor)
    if section.score == "general":
        score = Dot(weight=linear(f"{name}.weight", size, size, take, pack))
    elif section.score == "cosine":
        score = Cosine(float(take(f"{name}.sharpness", 1)[0]))
    elif section.score == "additive":
        memory = Linear([take(f"{name}.memory.weight", size, size)], [None], pack=pack)
        score = Additive(linear(f"{name}.state", size, size, take, pack), memory, take(f"{name}.direction", size))
    return Alignment(score, linear("decoder.cross.output", size, 2 * size, take, pack))


def recurrent_layers(
    section: RnnSection | RnnEncoderSection,
    name: str,
    count: int,
    entering: int,
    directions: int,
    take: Take,
    pack: Packer,
) -> list[Layer]:
    """Recurrent layers, of which the first reads vectors of ``entering`` entries; the others those of the one below.

    Products with what enters are in the precision. Those of what is carried stay fp32: each step adds to their error.
    """
    cell, ends = CELLS[section.cell](section.d_model // directions), ("", "_reverse")[:directions]
    columns = cell.gates * cell.size

    def product(layer: int, kind: str, inner: int, ends: tuple[str, ...], pack: Packer = FP32) -> Linear:
        kernel = f"{name}.layers.{layer}.kernel"
        weights = [take(f"{kernel}.weight_{kind}_l0{end}", columns, inner) for end in ends]
        biases = [take(f"{kernel}.bias_{kind}_l0{end}", columns) for end in ends]
        return Linear(weights, biases, pack=pack)

    return [
        Layer(
            cell,
            product(n, "ih", section.d_model if n else entering, ends, pack),
            [product(n, "hh", cell.size, (end,)) for end in ends],
        )
        for n in range(count)
    ]


def linear(name: str, size: int, inner: int, take: Take, pack: Packer = FP32, activation: str = "none") -> Linear:
    """A linear layer with a bias."""
    return Linear([take(f"{name}.weight", size, inner)], [take(f"{name}.bias", size)], activation, pack)
