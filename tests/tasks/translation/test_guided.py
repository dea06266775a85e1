"""Guided alignment: the loss of one head against links of words, by plain loops; where the links are kept."""

import numpy as np
import pytest
import torch

from regard.config import Recipe, recipe_from
from regard.data.alignment.hmm import LONGEST, WordAligner
from regard.data.alignment.prepared import INDEX, PreparedLinks
from regard.data.batches.batch import Position
from regard.data.corpora.pairs import open_pairs
from regard.data.prepare.folder import PreparedPairs
from regard.models.build import transformer
from regard.models.captured_attention import weights_of
from regard.models.inputs import pairs
from regard.system.errors import Damaged, RegardError, UsageError
from regard.tasks.training.base import ProductPaths
from regard.tasks.translation.align import AlignmentHead, heads_of, is_known
from regard.tasks.translation.training import TranslationTraining, links_of
from regard.tasks.translation.translator import Translation
from tests.data.prepare.preparing import prepare_pairs
from tests.refusals import refused

WEIGHT = 0.3
VALUES = {
    "text": {"vocabulary": 300},
    "data": {"validation": 12, "max_tokens": 64},
    "model": {"encoder_layers": 1, "decoder_layers": 3, "d_model": 8, "d_ff": 16, "heads": 2, "dropout": 0.0},
    "training": {"tokens": 128, "label_smoothing": 0.0},
}
PLAIN = recipe_from(VALUES)
GUIDED = recipe_from({**VALUES, "training": {**VALUES["training"], "guided_alignment": WEIGHT}})
WORDS = {"dog": "hund", "cat": "katze", "house": "haus", "green": "grün", "old": "alte", "tree": "baum", ",": ","}


@pytest.fixture(scope="module")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> PreparedPairs:
    """Pairs that are translated word by word, the last word first."""
    folder, draw = tmp_path_factory.mktemp("guided"), np.random.default_rng(1)
    chosen = [draw.permutation(list(WORDS))[: draw.integers(2, 7)].tolist() for _ in range(150)]
    (folder / "a.en").write_text("".join(f"{' '.join(words)} {n}\n" for n, words in enumerate(chosen)))
    turned = [[WORDS[word] for word in [words[-1], *words[:-1]]] for words in chosen]
    (folder / "a.de").write_text("".join(f"{' '.join(words)} {n}\n" for n, words in enumerate(turned)))
    return prepare_pairs([open_pairs(folder / "a.en", folder / "a.de")], PLAIN, folder / "data")


def made(prepared: PreparedPairs, recipe: Recipe = GUIDED) -> TranslationTraining:
    both = prepared.vocabularies
    model = transformer(recipe.model, both.source.size, both.target.size, 3)
    return TranslationTraining(Translation(recipe, both, model), prepared, ProductPaths())


def by_loops(teaching: TranslationTraining, number: int) -> float:
    """The loss of one pair."""
    prepared, model = teaching.prepared, teaching.model
    both = prepared.vocabularies
    source, target = (side.sentence(number).tolist() for side in (prepared.source, prepared.target))
    words = []
    for ids, tokenizer in ((source, both.source), (target, both.target)):
        words.append((np.cumsum(tokenizer.word_starts(ids)) - 1).tolist())
    links = set(zip(*(one.tolist() for one in links_of(prepared).gather(np.array([number]))[:2]), strict=True))
    assert links
    [weight_HQK] = weights_of(model, "transformer", [source], [[both.target.start, *target[:-1]]])["cross"][1]
    total = 0.0
    for j, word in enumerate(words[1]):
        keys = [i for i, other in enumerate(words[0]) if (other, word) in links]
        for i in keys:
            total -= float(weight_HQK[0, j + 1, i].log()) / len(keys)
    return WEIGHT * total


def test_the_loss_is_that_of_plain_loops(prepared: PreparedPairs) -> None:
    guided, plain = made(prepared), made(prepared, PLAIN)
    batch, _ = next(guided.batches.iterate(Position()))
    guided.model.train()
    plain.model.train()
    found, usual = guided.loss(batch), plain.loss(batch)
    wanted = sum(by_loops(guided, number) for number in batch.sentences.tolist())
    assert float(found.total.detach() - usual.total.detach()) == pytest.approx(wanted, rel=1e-4)
    assert (float(found.nll), found.count) == (pytest.approx(float(usual.nll), rel=1e-5), usual.count)
    found.total.backward()
    assert all(parameter.grad is not None for parameter in guided.model.parameters())


def test_validation_is_not_guided(prepared: PreparedPairs) -> None:
    guided, plain = made(prepared), made(prepared, PLAIN)
    assert guided.validate(False).loss == plain.validate(False).loss
    batch = guided.batches.validation[0]
    guided.model.eval()
    plain.model.eval()
    assert torch.equal(guided.loss(batch).total, plain.loss(batch).total)
    assert pairs(batch).labels_T.shape == batch.labels_T.shape


def test_links_are_those_of_the_lexical_model_over_the_words_of_the_tokenizers(prepared: PreparedPairs) -> None:
    both, texts = prepared.vocabularies, list[list[list[str]]]()
    for side, tokenizer in ((prepared.source, both.source), (prepared.target, both.target)):
        decoded = [tokenizer.decode(side.sentence(n)[:-1].tolist()) for n in range(prepared.pairs)]
        texts.append([text.split() for text in decoded])
    wanted = WordAligner(*texts).align(*texts)
    source_R, target_R, counts_B = links_of(prepared).gather(np.arange(prepared.pairs))
    ends = counts_B.cumsum()
    found = [
        frozenset(zip(source_R[end - count : end].tolist(), target_R[end - count : end].tolist(), strict=True))
        for count, end in zip(counts_B.tolist(), ends.tolist(), strict=True)
    ]
    assert found == wanted
    assert source_R.max() < LONGEST


def test_links_are_kept_and_damage_is_seen(prepared: PreparedPairs) -> None:
    links_of(prepared)
    ids = next(prepared.folder.glob("train.links.*ids"))
    content, before = ids.read_bytes(), (prepared.folder / INDEX).stat().st_mtime_ns
    links_of(prepared)
    assert (prepared.folder / INDEX).stat().st_mtime_ns == before
    ids.write_bytes(b"\0" + content[1:] if content[0] else b"\1" + content[1:])
    with refused(Damaged, ids.name):
        links_of(prepared)
    ids.write_bytes(content)
    other = type("Other", (), {"fingerprint": "0"})()
    with refused(RegardError, INDEX):
        PreparedLinks.of(prepared.folder, other, prepared.vocabularies)


def test_the_guided_head_aligns_words(prepared: PreparedPairs) -> None:
    assert heads_of(GUIDED, 3) == (AlignmentHead(2, 1, "reads"),)
    assert (is_known(GUIDED), is_known(PLAIN)) == (True, False)
    chosen = GUIDED.model_copy(
        update={"decoding": GUIDED.decoding.model_copy(update={"alignment_heads": ("3 predicts",)})}
    )
    assert heads_of(chosen, 3) == (AlignmentHead(3, 0, "predicts"),)


@pytest.mark.parametrize("values", [{"model": {"family": "rnn"}}, {"task": "text-to-text"}])
def test_other_models_are_not_guided(values: dict[str, object]) -> None:
    with refused(UsageError, None, "guided_alignment"):
        recipe_from({**values, "training": {"guided_alignment": 0.1}})
