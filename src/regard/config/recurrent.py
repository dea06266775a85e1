"""The section ``model`` for recurrent families."""

from __future__ import annotations

from typing import Literal

from pydantic import Field, model_validator

from regard.config.section import Section, Uses


class RnnSection(Section):
    """Recurrent encoder-decoder, without or with attention [Bahdanau15, Luong15]."""

    family: Literal["rnn"] = Field("rnn", description="the architecture")
    cell: Literal["elman", "gru", "lstm"] = Field("gru", description="what is repeated: elman: tanh; gru, lstm: gated")
    encoder_layers: int = Field(1, ge=1, le=64, description="layers that read")
    decoder_layers: int = Field(1, ge=1, le=64, description="layers that write")
    d_model: int = Field(256, ge=2, le=65536, description="size of embeddings and of every state")
    two_way: bool = Field(True, description="the encoder reads from both ends, each with half of the state")
    score: Literal["none", "dot", "scaled", "general", "additive", "cosine"] = Field(
        "additive", description="how the decoder's state is compared with the encoder's; none: no attention at all"
    )
    input_feeding: bool = Field(False, description="what was attended to also enters the next step [Luong15 §3.3]")
    tie: Literal["none", "two", "three"] = Field(
        "three", description="two: target embedding = output; three: source embedding too (needs a joint vocabulary)"
    )
    dropout: float = Field(0.2, ge=0.0, lt=1.0, description="on embeddings, between layers and before the output")

    @model_validator(mode="after")
    def _halves(self) -> RnnSection:
        _refuse_odd_halves(self.two_way, self.d_model)
        if self.input_feeding and self.score == "none":
            raise ValueError('input_feeding feeds what was attended to; with score = "none" there is nothing')
        return self

    @property
    def attention(self) -> Uses:
        """Layers and heads of each use of attention."""
        return {} if self.score == "none" else {"cross": (1, 1)}

    @property
    def divisor(self) -> float:
        """Divisor of the attention scores."""
        return float(self.d_model**0.5) if self.score == "scaled" else 1.0

    @property
    def known_positions(self) -> float:
        """A recurrence counts without end."""
        return float("inf")


class RnnEncoderSection(Section):
    """A recurrence that reads texts, to label them or their words [Yang16, Lample16]."""

    family: Literal["rnn-encoder"] = Field("rnn-encoder", description="the architecture")
    cell: Literal["elman", "gru", "lstm"] = Field("gru", description="what is repeated: elman: tanh; gru, lstm: gated")
    layers: int = Field(1, ge=1, le=64, description="layers that read")
    d_model: int = Field(256, ge=2, le=65536, description="size of embeddings and of every state")
    two_way: bool = Field(True, description="texts are read from both ends, each with half of the state")
    pool: Literal["mean", "max", "attention"] = Field(
        "mean",
        description="what stands for a text, or a tagged word: the mean or largest of its tokens; attention: their "
        "mean, weighed by how each answers a learned query (texts only)",
    )
    pooler: bool = Field(False, description="a dense layer with tanh between that and the classes")
    dropout: float = Field(0.4, ge=0.0, lt=1.0, description="on embeddings, between layers and before the classes")

    @model_validator(mode="after")
    def _halves(self) -> RnnEncoderSection:
        _refuse_odd_halves(self.two_way, self.d_model)
        return self

    @property
    def attention(self) -> Uses:
        """Layers and heads of each use of attention."""
        return {"pool": (1, 1)} if self.pool == "attention" else {}

    @property
    def divisor(self) -> float:
        """Divisor of the attention scores; 1 for additive ones."""
        return 1.0

    @property
    def known_positions(self) -> float:
        """A recurrence counts without end."""
        return float("inf")


def _refuse_odd_halves(two_way: bool, d_model: int) -> None:
    """Raise a ValueError where a state cannot be halved between two directions."""
    if two_way and d_model % 2:
        raise ValueError(f"d_model {d_model} cannot be halved between two directions; choose an even one")
