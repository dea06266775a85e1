"""The formats that the rows of the families name, by the word ``model_type`` of ``config.json``."""

from regard.config import FAMILIES
from regard.config.tasks import import_name
from regard.convert.layouts.format import Format

_ALL = [import_name(name)(family) for family, section in FAMILIES.items() for name in section.info.exports]
FORMATS: dict[str, Format] = {format.model_type: format for format in _ALL}
