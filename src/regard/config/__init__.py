"""The recipe: frozen sections of plain values; no behaviour, no torch.

A recipe is a TOML file. Every field has a default that works, a unit and a reason; an unknown key is answered with the
nearest known one. Recipes hold no paths: data comes from the command line.
"""

from regard.config.families import FAMILIES as FAMILIES
from regard.config.families import Attentive as Attentive
from regard.config.families import BertSection as BertSection
from regard.config.families import GptSection as GptSection
from regard.config.families import Model as Model
from regard.config.families import RnnEncoderSection as RnnEncoderSection
from regard.config.families import RnnSection as RnnSection
from regard.config.families import TransformerSection as TransformerSection
from regard.config.families import VitSection as VitSection
from regard.config.reading import LEFT as LEFT
from regard.config.reading import changed_section as changed_section
from regard.config.reading import check_value as check_value
from regard.config.reading import did_you_mean as did_you_mean
from regard.config.reading import dump_toml as dump_toml
from regard.config.reading import known_keys as known_keys
from regard.config.reading import merge as merge
from regard.config.reading import nearest as nearest
from regard.config.reading import override as override
from regard.config.reading import recipe_from as recipe_from
from regard.config.reading import recipe_toml as recipe_toml
from regard.config.reading import recipe_values as recipe_values
from regard.config.reading import saved_recipe as saved_recipe
from regard.config.reading import without_left as without_left
from regard.config.recipe import TASKS as TASKS
from regard.config.recipe import Recipe as Recipe
from regard.config.recipe import TaskInfo as TaskInfo
from regard.config.recipe import import_name as import_name
from regard.config.sections import FORMAT as FORMAT
from regard.config.sections import LANGUAGE as LANGUAGE
from regard.config.sections import Adapt as Adapt
from regard.config.sections import Classification as Classification
from regard.config.sections import Data as Data
from regard.config.sections import Decoding as Decoding
from regard.config.sections import Images as Images
from regard.config.sections import Masking as Masking
from regard.config.sections import Section as Section
from regard.config.sections import Text as Text
from regard.config.sections import TextToTextSection as TextToTextSection
from regard.config.sections import Training as Training
