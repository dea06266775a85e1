"""One table of names for each format, by the word ``model_type`` of ``config.json``."""

from regard.convert.layouts.encoder_decoder import T5, Marian, Pegasus
from regard.convert.layouts.format import Format
from regard.convert.layouts.single_stack import Bert, Gpt2, Vit

FORMATS: dict[str, Format] = {
    format.model_type: format for format in (Bert(), Gpt2(), Marian(), Pegasus(), T5(), Vit())
}
