"""The formats of others by the word ``model_type`` of ``config.json``."""

from regard.runs.convert.layouts.encoder_decoder import T5, Marian, Pegasus
from regard.runs.convert.layouts.format import Format
from regard.runs.convert.layouts.single_stack import Bert, Gpt2, Vit

FORMATS: dict[str, Format] = {form.model_type: form() for form in (Marian, Pegasus, T5, Bert, Gpt2, Vit)}
