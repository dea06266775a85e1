"""What speaks against a translation: by plain loops over words and over the model's own attention."""

import math
from functools import partial
from typing import Any

import numpy as np
import pytest

from regard.config import Recipe
from regard.models.captured_attention import weights_of
from regard.system.errors import UsageError
from regard.tasks.engine import use_engine
from regard.tasks.text.output_options import OutputOptions
from regard.tasks.text.terms import Terminology
from regard.tasks.text.writer import Hypothesis
from regard.tasks.translation.calibration import calibrate
from regard.tasks.translation.guard import DEFAULT, LEAST, ForcedPass, fit, forced_passes, judge, mark_repetitions
from regard.tasks.translation.retry import retry
from regard.text.terms import TermList
from tests.refusals import refused
from tests.tasks.small_tasks import SOURCE, TARGET, recurrent, translator


def warned(source: str, output: str, forced: ForcedPass | None = None) -> dict[str, list[str]]:
    found = judge(source, output, forced, {})
    return {one.kind: found.texts(one) for one in found.warnings}


def test_words_tell_of_loops_copies_and_lengths() -> None:
    source = "The old dog sees the tree in the garden of Anna Smith in 2019."
    assert warned(source, "Der alte Hund sieht den Baum im Garten von Anna Smith im Jahr 2019.") == {}
    assert warned("a b c d e f", "a2 b2 x x x e2 f2") == {"repetition": ["x x"]}
    assert warned("very very old old", "sehr sehr alt alt") == {}
    looped = "Der Hund sieht den Baum und der Hund sieht den Baum"
    assert warned(source, looped) == {"repetition": ["der Hund sieht den Baum"]}
    left = "Der alte Hund sees the tree im Garten von Anna Smith."
    assert warned(source, left) == {"copy": ["sees the tree"]}
    assert warned(source, "Der Hund.") == {"short": []}
    assert warned("The dog.", "Der Hund und was er sonst noch so alles sah.") == {"long": []}
    assert warned("", "") == {}


def test_repeated_words_are_those_of_its_definition() -> None:
    draw = np.random.default_rng(3)
    for _ in range(200):
        words = draw.choice(list("abc"), draw.integers(0, 12)).tolist()
        wanted = [False] * len(words)
        for place in range(len(words)):
            for size in (1, 2):
                if place >= size and words[place : place + size] == words[place - size : place]:
                    wanted[place : place + size] = [True] * size
            before = [words[first : first + 3] for first in range(place - 2)]
            if len(words) >= place + 3 and words[place : place + 3] in before:
                wanted[place : place + 3] = [True] * 3
        assert mark_repetitions(words).tolist() == wanted


def test_the_model_tells_of_words_left_out_and_of_improbable_ones() -> None:
    places = [(0, 2), (3, 5), (6, 7), (7, 8), (0, 0)]
    forced = ForcedPass(places, [(0, 2), (3, 5)], np.array([0.9, 0.02, 0.08, 0.05, 1.0]), np.array([-1.0, -13]), -8.0)
    found = judge("ab cd ef", "xy zw", forced, {})
    coverage = [0.9, 0.02, 0.08 + 0.05]
    missing, improbable = found.features[-2:]
    assert missing.value == pytest.approx(-sum(map(math.log, coverage)) / 3, abs=1e-5)
    assert (found.texts(missing), found.texts(improbable)) == (["cd ef"], ["zw"])
    assert found.score == pytest.approx(sum(max(0.0, one.value / DEFAULT[one.kind]) for one in found.features))
    assert found.sentence.startswith("words that nothing was written for: “cd ef”; improbable: “zw”")
    nothing = ForcedPass(places, [(0, 2), (3, 5)], np.full(5, np.nan), np.array([-1.0, -1]), -1.0)
    assert not judge("ab cd ef", "xy zw", nothing, {}).warnings


@pytest.mark.one_of(2)
@pytest.mark.usefixtures("compiled")
@pytest.mark.parametrize("made", [partial(translator, decoder_heads=2), recurrent])
@pytest.mark.parametrize("fast", [True, False])
def test_a_forced_pass_is_the_models_own_attention_and_probabilities(made: Any, fast: bool) -> None:
    task = made()
    if fast:
        use_engine(task)
    pairs = [(SOURCE, TARGET), ("too tired", "zu müde")]
    for (source, output), (*_, forced) in zip(pairs, forced_passes(task, *zip(*pairs, strict=True)), strict=True):
        assert forced is not None
        [scored] = task.score([source], [output])
        wanted = [*forced.log_probability_T.tolist(), forced.log_probability * len(scored.pieces)]
        assert wanted[:-1] == pytest.approx(scored.log_probabilities[:-1], rel=1e-4)
        assert wanted[-1] == pytest.approx(scored.log_probability, rel=1e-4)
        [ids], written = task.sources(source), [task.symbols.start, *task.target_tokenizer.ids_batch([output])[0]]
        layers = weights_of(task.model, task.recipe.model.family, [ids.tolist()], [written])["cross"]
        coverage = [layer[0][head, :, :].sum(0).numpy() for layer in layers for head in range(len(layer[0]))]
        assert forced.coverage_S == pytest.approx(np.mean(coverage, axis=0), rel=1e-5)
        assert [len(forced.source_places), len(forced.output_places)] == [len(ids), len(written) - 1]
    alone = [task.guard([source], [output])[0] for source, output in pairs]
    for one, other in zip(task.guard(*map(list, zip(*pairs, strict=True))), alone, strict=True):
        assert (one == other) if task.engine else one.score == pytest.approx(other.score, rel=1e-4)
    assert not task.guard([SOURCE * 5], [TARGET])[0].read
    with refused(UsageError, "translations", "1", "2"):
        task.guard(["a", "b"], ["a"])


@pytest.mark.parametrize("count", [200, pytest.param(400, marks=pytest.mark.long(0.1))])
def test_thresholds_are_what_few_sound_pairs_exceed(count: int) -> None:
    draw = np.random.default_rng(5)
    lengths = draw.normal(80, 12, count).astype(int).tolist()
    pairs = [(" ".join("ab" * 40), " ".join(f"x{i}" for i in range(length)), None) for length in lengths]
    found = fit(pairs)
    assert found.keys() == DEFAULT.keys()
    assert {name: found[name] for name in ("repetition", "copy")} == {n: LEAST[n] for n in ("repetition", "copy")}
    reports = [judge(*pair, found) for pair in pairs]
    assert 0 < sum(bool(one.warnings) for one in reports) <= 2 * 0.01 * len(pairs)
    assert all(one.fitted for one in reports)
    assert fit(pairs[:99]) == {}
    task = translator()
    [[best]] = task.nbest([SOURCE])
    assert calibrate((task, SOURCE, TARGET, best) for _ in range(120)).guard.keys() == DEFAULT.keys()


class Searched:
    """A task whose searches find what it is told, and whose guard counts exclamation marks."""

    others, direction, recipe = (), ("en", "de"), Recipe()
    terminology: Terminology | None = None

    def __init__(self, found: dict[tuple[str, ...], list[str]], settings: tuple[str, ...] = ()) -> None:
        self.found, self.settings = found, settings

    def with_settings(self, settings: tuple[str, ...]) -> "Searched":
        return Searched(self.found, settings)

    def write(self, texts: list[str], options: OutputOptions, prefixes: Any) -> list[list[Hypothesis]]:
        return guarded([self.found[self.settings][int(text)] for text in texts])


def guarded(outputs: list[str]) -> list[list[Hypothesis]]:
    """Outputs and the reports on them."""
    reports = [judge("a b c d", f"A B{' X' * output.count('!')} C", None, {}) for output in outputs]
    return [[Hypothesis(text, (), 0.0, guard=one)] for text, one in zip(outputs, reports, strict=True)]


def test_the_soundest_of_several_searches_is_kept() -> None:
    """The penalty is for models that attend."""
    beam, block = ("decoding.beam=5",), ("decoding.beam=5", "decoding.no_repeat_ngram=3")
    found = {beam: ["-", "b!!!!", "c"], block: ["-", "d!!!", "-"]}
    first = guarded(["a", "b!!!!!", "c!!!"])
    task: Any = Searched(found)
    kept = retry(task, ["0", "1", "2"], first, OutputOptions(beam=1))
    assert [one[0].text for one in kept] == ["a", "d!!!", "c"]
    assert [[each.text for each in one[0].tried] for one in kept] == [[], ["b!!!!!", "b!!!!", "d!!!"], ["c!!!", "c"]]
    assert [one.settings for one in kept[1][0].tried] == [(), beam, block]
    wide: Any = Searched({block[1:]: ["-", "e", "e"]})
    assert [one[0].text for one in retry(wide, ["0", "1", "2"], first, OutputOptions(beam=4))] == ["a", "e", "e"]


def test_a_sounder_translation_without_its_term_is_not_kept() -> None:
    task: Any = Searched(
        {("decoding.beam=5",): ["b", "b"], ("decoding.beam=5", "decoding.no_repeat_ngram=3"): ["c!!!", "d"]}
    )
    task.terminology = Terminology(TermList(("0\ta",)), forbidden=("d",))
    first = guarded(["a!!!!!", "a!!!!!"])
    assert [one[0].text for one in retry(task, ["0", "1"], first, OutputOptions(beam=1))] == ["a!!!!!", "b"]


def test_the_last_search_is_by_a_coverage_penalty() -> None:
    task = translator(decoder_layers=1)
    task.recipe = task.recipe.model_copy(update={"decoding": task.recipe.decoding.model_copy(update={"beam": 2})})
    [kept] = task.write([SOURCE], OutputOptions(guard="retry"))
    assert [one.settings[:1] for one in kept[0].tried[1:]] == [
        ("decoding.no_repeat_ngram=3",),
        ("decoding.coverage_penalty=0.4",),
    ]
    assert kept[0].guard is not None
    assert kept[0].guard.score == pytest.approx(min(one.score for one in kept[0].tried), abs=1e-4)
    wanted = task.with_settings(["decoding.coverage_penalty=0.4"]).nbest([SOURCE])
    assert kept[0].tried[-1].text == wanted[0][0].text
    with refused(UsageError, "settings", "term_bonus", "coverage_penalty"):
        task.with_settings(["decoding.coverage_penalty=0.4", "decoding.term_bonus=1"])
