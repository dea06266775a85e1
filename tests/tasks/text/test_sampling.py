"""Options of sampling are laid over the recipe's, and checked."""

from regard.config import Decoding
from regard.system.errors import UsageError
from regard.tasks.text.sampling import sampling_options
from tests.refusals import refused


def test_what_is_given_counts_and_the_rest_is_the_recipes() -> None:
    section = Decoding(top_k=3, top_p=0.5)
    found = sampling_options(section, {"top_p": 0.9, "temperature": 0.0, "top_k": None}, "sample")
    assert found == section.model_copy(update={"top_p": 0.9, "temperature": 0.0})


def test_what_does_not_fit_is_refused() -> None:
    with refused(UsageError, "heat", "sample", "temperature"):
        sampling_options(Decoding(), {"heat": 1.0}, "sample")
    with refused(UsageError, "top_p"):
        sampling_options(Decoding(), {"top_p": 2.0}, "sample")
