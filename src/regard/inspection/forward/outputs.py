"""Model outputs by task: next-token candidates, classes, tags, fillings of gaps, and beam search with its tree."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from math import exp, inf, log
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from regard.decoding.hypotheses import Fate, Trace, TraceStep
from regard.decoding.search import search
from regard.inspection.forward.record import ModelInputs, one_sequence, piece, shown_symbols, text_inputs, visible
from regard.system.errors import UsageError
from regard.tasks.kinds import (
    continues_text,
    fills_words,
    labels_examples,
    labels_texts,
    reads_text,
    tags_words,
    writes_text,
)
from regard.text.confidence import confidence_of, is_doubted

if TYPE_CHECKING:
    from torch import Tensor

    from regard.decoding.hypotheses import Hypothesis, Ints
    from regard.tasks.classification.classifier import Prediction, TextLabelTask
    from regard.tasks.classification.ngrams import LinearNGrams
    from regard.tasks.protocols import Task, TextWriter

Output = dict[str, Any]
PIECES = ("text", "continuation", "words")
"""The kinds of output that are pieces; classifiers and taggers predict none."""
CANDIDATES, LABELS = 5, 6
"""Alternatives shown for each token, and labels of which it is shown what n-grams say."""


@dataclass(frozen=True)
class Candidate:
    """One candidate: the piece's id, its display text, and its probability at that position."""

    id: int
    piece: str
    probability: float


def piece_scores(task: Task, hidden_TD: Tensor) -> Tensor:
    """``score_TV`` of a model that predicts pieces."""
    model: Any = task.model
    return (
        model.head.scores(model.head(hidden_TD, one_sequence(hidden_TD)))
        if fills_words(task)
        else model.scores(hidden_TD)
    )


def scores(seen: ModelInputs) -> Tensor:
    """``score_TV`` of every piece at each position, in float64.

    A decoder says what it would write there, a language model what comes next; a masked-language model what may stand
    there, though it sees what does, but for the gaps.

    Raises:
        UsageError: the model predicts no tokens.
    """
    import torch

    from regard.models.captured_attention import evaluating

    task = seen.task
    if task.info.writes not in PIECES:
        raise UsageError("this model predicts no tokens", "candidates")
    with torch.inference_mode(), evaluating(task.model):
        return piece_scores(task, seen.run()).double()


def candidates(task: Task, score_TV: Tensor, k: int = 5) -> list[list[Candidate]]:
    """The pieces with the ``k`` highest scores at each position."""
    probability_TV = score_TV.softmax(1).cpu().numpy()
    assert reads_text(task)
    tokenizer = task.target_tokenizer
    order = np.argsort(-probability_TV, axis=1, kind="stable")[:, :k]
    return [
        [Candidate(int(id), piece(tokenizer, int(id)), float(row[id])) for id in ids]
        for ids, row in zip(order, probability_TV, strict=True)
    ]


def classes(task: Task, given: Any) -> Output:
    """All labels of a text or an image with probabilities, most probable first; of a regression the number."""
    assert labels_examples(task)
    return _ranked(task.classify(given), task.recipe.classification.kind == "multi")


def _ranked(verdict: Prediction, several: bool) -> Output:
    ranked = sorted((verdict.probabilities or {}).items(), key=lambda one: -one[1])
    said: object = list(verdict.labels) if several else verdict.label if verdict.value is None else verdict.value
    return {"kind": "classes", "classes": [list(one) for one in ranked], "said": said, "several": several}


def doubt(task: Task, probabilities: Sequence[float]) -> tuple[float, bool | None]:
    """The confidence of an output with these probabilities of tokens, and whether it is doubted, if that is known."""
    whole = sum(log(found) if found > 0 else -inf for found in probabilities)
    confidence = confidence_of(whole, len(probabilities))
    return confidence, is_doubted(confidence, getattr(task.assets, "doubted_below", None))


def _text_classes(task: Task, text: str) -> Output:
    """The same of a text, with what n-grams add, where there is a classifier of them."""
    assert labels_texts(task)
    if task.assets.ngrams is None or not text.strip():
        return classes(task, text)
    score_C = task.scores([text])[0]
    found = _ranked(task.predictor().predictions(score_C[None])[0], task.recipe.classification.kind == "multi")
    labels = [label for label, _ in found["classes"][:LABELS]]
    ngrams = ngram_shares(task, task.assets.ngrams, text, score_C, labels)
    return found if ngrams is None else {**found, "ngrams": ngrams}


def ngram_shares(
    task: TextLabelTask, ngrams: LinearNGrams, text: str, score_C: NDArray[np.float64], labels: Sequence[str]
) -> Output | None:
    """What the linear classifier of n-grams adds to the scores of some labels, and what each word of the text does.

    Scores are as the softmax, or of several labels the sigmoid, takes them: with its factor, by the temperature.

    Args:
        task, ngrams: a model, and its classifier.
        text: one that is not blank.
        score_C: of it.
        labels: to explain.

    Returns:
        ``labels``; of each label ``whole``, its score, and ``ngrams``, the part of n-grams with ``bias`` in it;
        ``words`` with the part of each word in each label's. ``None``: the text has several windows.
    """
    windows = task.windows([text])[0]
    if len(windows) != 1:
        return None
    read = task.assets.tokenizer.decode(windows[0].tolist())  # what the model reads of the text
    fitted, places = task.assets.fitted, [task.assets.labels.index(label) for label in labels]
    factor = fitted.ngrams / fitted.temperature
    words, share_WC = ngrams.contributions(read)
    bias_L = factor * ngrams.bias_C[places]
    share_WL = factor * share_WC[:, places]
    return {
        "labels": list(labels),
        "whole": (score_C[places] / fitted.temperature).tolist(),
        "ngrams": (share_WL.sum(0) + bias_L).tolist(),
        "bias": bias_L.tolist(),
        "words": [[word, row] for word, row in zip(words, share_WL.tolist(), strict=True)],
    }


def _tags(task: Task, text: str) -> Output:
    """A tag for each word, with its probability."""
    assert tags_words(task)
    found = task.tag(text)
    words = zip(found.places, found.words, found.tags, found.probabilities, strict=True)
    tags = [
        {"start": start, "end": end, "text": word, "tag": tag, "probability": float(probability)}
        for (start, end), word, tag, probability in words
    ]
    return {"kind": "tags", "tags": tags}


def _words(task: Task, text: str) -> Output:
    """Candidates for each gap, and the text with the best ones filled in."""
    assert fills_words(task)
    gaps = task.fill(text, CANDIDATES)
    ranked = [[[visible(one.piece), one.probability] for one in gap] for gap in gaps]
    return {"kind": "words", "gaps": ranked, "text": gaps[0][0].text if gaps else text}


OF_TEXTS: dict[str, Callable[[Task, str], Output]] = {
    "classes": _text_classes,
    "tags": _tags,
    "words": _words,
    "continuation": lambda task, text: {"kind": "continuation"},
    "nothing": lambda task, text: {"kind": "nothing"},
}
"""By kind of output, where it needs no search."""


@dataclass(frozen=True)
class SearchInputs:
    """A text prepared for decoding.

    Args:
        task: the model, ready to use.
        source: what is read before the first step.
        first: the token that the first step reads; ``None``: the start symbol.
        limit: tokens that may be written, ``</s>`` counted; ``None``: as the recipe has it.
    """

    task: TextWriter
    source: Ints
    first: int | None
    limit: int | None

    @property
    def step(self) -> Any:
        """The model's incremental decoder."""
        from regard.models.decoding import stepper

        task = self.task
        window = {} if self.first is None else {"window": task.recipe.data.max_tokens}
        return stepper(task.model, task.device, **window)

    def text(self, ids: Iterable[int]) -> str:
        """The text of piece ids; sentinels are shown by name."""
        from regard.tasks.text.task import decode_with_symbols

        return decode_with_symbols(self.task.target_tokenizer, ids, shown_symbols(self.task))


def prepare_search(task: Task, text: str, most: int) -> SearchInputs:
    """Prepare a text for decoding.

    Args:
        task: a translator, or a model of text to text or of language.
        text: what it reads.
        most: tokens that a language model goes on with; the others stop by themselves.

    Raises:
        UsageError: the model writes no text.
        RegardError: the text is empty or longer than those the model learned from.
    """
    if continues_text(task):
        *source, first = text_inputs(task, text).read_ids
        return SearchInputs(task, np.array(source, np.int64), first, most)
    if not writes_text(task):
        raise UsageError("this model writes no text", "model")
    read = text_inputs(task, text, ()).read_ids
    return SearchInputs(task, np.array(read, np.int64), None, None)


def beam_search(start: SearchInputs, beam: int, trace: Trace | None = None) -> list[Hypothesis]:
    """The best hypotheses, as many as the beam size, best first."""
    firsts = None if start.first is None else [start.first]
    return search(
        start.step,
        [start.source],
        start.task.recipe.decoding.model_copy(update={"beam": beam}),
        start.task.symbols,
        nbest=beam,
        firsts=firsts,
        limits=None if start.limit is None else [start.limit],
        trace=trace,
    )[0]


@dataclass(frozen=True)
class SearchNode:
    """A token of the search tree; nodes are ordered by step and score, so parents precede children.

    Args:
        step: how many tokens the prefix has, this one counted.
        parent: the number of the node it continues; -1: it is the first.
        id, piece: the token.
        probability: of the token given its prefix.
        log_probability: of the whole prefix.
        fate: live: it went on; finished: it ended; left: it was given up, or cut off.
        others: candidates after the prefix, including the chosen one: pieces and probabilities.
    """

    step: int
    parent: int
    id: int
    piece: str
    probability: float
    log_probability: float
    fate: Fate
    others: tuple[tuple[str, float], ...]


def tree(steps: Sequence[TraceStep], piece: Callable[[int], str]) -> list[SearchNode]:
    """The search tree of one sentence.

    Args:
        steps: its trace.
        piece: a token as people read it.
    """
    nodes: list[SearchNode] = []
    entering = [-1]
    for number, step in enumerate(steps, 1):
        options = [
            tuple((piece(id), exp(value)) for id, value in zip(ids, values, strict=True))
            for ids, values in zip(step.candidates, step.candidate_log_probabilities, strict=True)
        ]
        going_on: dict[int, int] = {}
        for row, parent, id, own, whole, fate in zip(
            step.rows,
            step.parents,
            step.tokens,
            step.token_log_probabilities,
            step.log_probabilities,
            step.fates,
            strict=True,
        ):
            if fate == "live":
                going_on[row] = len(nodes)
            nodes.append(SearchNode(number, entering[parent], id, piece(id), exp(own), whole, fate, options[parent]))
        entering = [going_on[row] for row in sorted(going_on)]
    return nodes


def branch(nodes: Sequence[SearchNode], last: int) -> list[int]:
    """The node numbers from the first token to the node ``last``."""
    found = []
    while last >= 0:
        found.append(last)
        last = nodes[last].parent
    return found[::-1]
