"""Next-token candidates, compared with the models' own output."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from regard.config import Recipe, TransformerSection, recipe_from
from regard.explore.forward.inputs import text_inputs
from regard.explore.forward.outputs import top_candidates
from regard.models.build import transformer
from regard.models.decoding.transformer import TransformerStepper
from regard.system.errors import UsageError
from regard.tasks.model_folder import TASKS
from regard.tasks.tagging.assets import TagAssets
from regard.tasks.text.assets import TextAssets
from regard.tasks.translation.translator import Translation
from regard.text.tokenizers.tokenizer import learn
from regard.text.tokenizers.vocabulary import learn_vocabularies
from tests.models.small_models import stir
from tests.refusals import refused

SOURCE = "The animal didn't cross the street because it was too tired."
TARGET = "Das Tier überquerte die Straße nicht, weil es zu müde war."


def task_of(name: str) -> Any:
    sizes = {"layers": 1, "d_model": 16, "d_ff": 32, "heads": 2}
    recipe = recipe_from({"task": name, "model": sizes})
    tokenizer = learn([SOURCE], 300, symbols=("[CLS]", "[MASK]"))
    assets: Any = TagAssets(tokenizer, ("A", "B"), scheme="none") if name == "tagging" else TextAssets(tokenizer)
    model = TASKS[name].build(recipe, assets.sizes, key=5).eval()
    stir(model)
    return TASKS[name](recipe, assets, model)


def test_a_translator_says_what_its_steps_say() -> None:
    vocabularies = learn_vocabularies([(SOURCE, TARGET)] * 3, 400)
    section = TransformerSection(encoder_layers=1, decoder_layers=1, d_model=16, d_ff=32, heads=4)
    model = transformer(section, vocabularies.source.size, vocabularies.target.size, key=3).eval()
    stir(model)
    task = Translation(Recipe(model=section), vocabularies, model)
    found = top_candidates(text_inputs(task, SOURCE, TARGET), 4)
    source = np.array([*vocabularies.source.encode(SOURCE).ids, vocabularies.source.end])
    step = TransformerStepper(model)
    state = step.start([source])
    for id, candidates in zip([vocabularies.target.start, *vocabularies.target.encode(TARGET).ids], found, strict=True):
        state, answer = step.step(state, np.array([id]))
        logarithm_V = np.asarray(answer.all())[0]
        best = np.argsort(-logarithm_V)[:4]
        assert [one.id for one in candidates] == best.tolist()
        np.testing.assert_allclose([one.probability for one in candidates], np.exp(logarithm_V[best]), rtol=1e-4)
        assert [one.piece for one in candidates] == [vocabularies.target.piece(int(id)) for id in best]


def test_a_language_model_says_what_comes_next() -> None:
    task = task_of("language-model")
    seen = text_inputs(task, SOURCE)
    every = top_candidates(seen, task.assets.tokenizer.size)
    assert len(every) == len(seen.source)
    assert [sum(one.probability for one in candidates) for candidates in every] == pytest.approx([1] * len(every))
    scored = task.score(SOURCE)
    ids = task.assets.tokenizer.encode(SOURCE).ids
    chosen = [{one.id: one.probability for one in candidates}[id] for candidates, id in zip(every, ids, strict=False)]
    np.testing.assert_allclose(np.log(chosen), scored.log_probabilities[: len(ids)], rtol=1e-4)


def test_a_model_of_masked_words_says_what_it_fills() -> None:
    task = task_of("masked-lm")
    text = "The animal didn't cross the [MASK]."
    gap = task._masked_text(text).gaps[0] + 1  # behind [CLS]
    with torch.inference_mode():
        (filled,) = task.fill(text, 3)
    seen = text_inputs(task, text)
    assert [token.text for token in seen.source].count("[MASK]") == 1
    assert "".join(text[token.start : token.end] for token in seen.source) == text.replace(" [MASK]", "")
    named = {one.piece: one.probability for one in top_candidates(seen, task.assets.tokenizer.size)[gap]}
    assert seen.source[gap].text == "[MASK]"
    assert [named[one.piece] for one in filled] == pytest.approx([one.probability for one in filled], rel=1e-4)


def test_who_says_no_pieces() -> None:
    task = task_of("tagging")
    with refused(UsageError, "candidates"):
        top_candidates(text_inputs(task, SOURCE))
