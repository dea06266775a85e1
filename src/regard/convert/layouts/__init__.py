"""The formats of others by the word ``model_type`` of ``config.json``, with the family that each is a form of."""

from regard.convert.layouts.encoder_decoder import T5, Marian, Pegasus
from regard.convert.layouts.format import Format
from regard.convert.layouts.single_stack import Bert, Gpt2, Vit

_ALL = [*(form("transformer") for form in (Marian, Pegasus, T5)), Bert("bert"), Gpt2("gpt"), Vit("vit")]
FORMATS: dict[str, Format] = {format.model_type: format for format in _ALL}
