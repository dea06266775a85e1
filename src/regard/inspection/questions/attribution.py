"""What a prediction rests on: gradient × input of each token, and the score without each head."""

from __future__ import annotations

import time
from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import islice
from typing import TYPE_CHECKING, Literal, TypeVar

import numpy as np
from numpy.typing import NDArray

from regard.inspection.folders.models import Models
from regard.inspection.forward.outputs import PIECES, piece_scores
from regard.inspection.forward.passes import inputs_of
from regard.inspection.forward.record import ModelInputs, every_head, one_sequence
from regard.inspection.requests import (
    AblationRequest,
    Answer,
    Piece,
    Place,
    Places,
    Request,
    Text,
    check_finite,
    question,
)
from regard.system.errors import UsageError
from regard.tasks.kinds import fills_words, labels_examples, labels_texts, reads_text, tags_words
from regard.text.tags import places_of

if TYPE_CHECKING:
    from torch import Tensor

    from regard.nn.heads import Chain
    from regard.nn.layout import Sequences
    from regard.tasks.protocols import Task, TextModel

T = TypeVar("T")
Score = Callable[["Tensor"], "Tensor"]
"""From ``hidden_TD`` of a pass to a scalar."""
Shares = dict[str, NDArray[np.floating]]
"""Of each token, by side."""
Method = Literal["gradient_x_input", "integrated_gradients"]
PASSES = 400
"""Most passes of integrated gradients, by default."""
FEWEST = 32
"""Passes below which integrated gradients have no meaning: the parts of the path at first."""
AT_ONCE = 64
"""Passes for a page that waits, of a small model: about a second on one core; shares lack less than a hundredth."""
WORK = 4e9
"""Parameters × tokens summed over the passes of integrated gradients: about a second on one core."""
SECONDS = 2.0
"""Seconds after which a partial answer is returned: other requests wait, and the client may have left."""


@question
def input_attribution(
    models: Models,
    asked: Request,
    place: Place | None = None,
    label: Text | None = None,
    against: Piece | Text | None = None,
    method: Method = "gradient_x_input",
) -> Answer:
    """Attribution of a log-probability or a regression value to each token read and each token written before.

    Args:
        models, asked: the pass.
        place, label: as of :func:`explained_score`.
        against: another output, whose log-probability is taken off: a piece by its number, or a label.
        method: gradient × input, or integrated gradients; these also have a ``baseline``, the score where all
            embeddings are zero.

    Raises:
        UsageError: there is no such output.
        RegardError: the model computes NaN or infinite values.
    """
    seen = inputs_of(models, asked)
    score_of = explained_score(seen, place, label)
    if isinstance(against, str):
        score_of = difference(score_of, explained_score(seen, place, against))
    elif against is not None:
        if seen.task.info.writes not in PIECES or place is None:
            raise UsageError("this model predicts labels; name one of them", "against")
        assert reads_text(seen.task)
        if against >= (size := seen.task.target_tokenizer.size):
            raise UsageError(f"a piece is named by its number, from 0 to {size - 1}", "against")
        score_of = difference(score_of, pieces_score(seen, [place], [against]))
    score, baseline, shares = attribute(seen, asked.changes, score_of, method, affordable_passes(seen))
    return {"score": score, "baseline": baseline}, {name: share.astype(np.float32) for name, share in shares.items()}


def difference(one: Score, other: Score) -> Score:
    """What one score is more than another, as of one output instead of another [Yin22 §2]."""
    return lambda hidden_TD: one(hidden_TD) - other(hidden_TD)


def affordable_passes(seen: ModelInputs) -> int:
    """Passes of integrated gradients for a page that waits: most of a small model, the fewest of a large one."""
    from regard.models.presets import count_parameters

    size = count_parameters(seen.task.model) * (len(seen.source) + len(seen.written))
    return min(AT_ONCE, max(FEWEST, int(WORK / size)))


def attribute(
    seen: ModelInputs, without: AblationRequest, score: Score, method: Method, passes: int
) -> tuple[float, float | None, Shares]:
    """A score and its attribution to the ``source`` tokens, and for an encoder-decoder to the ``target`` tokens.

    The model is changed inside of what is followed backwards: an embedding is watched before anything is taken away.
    Of integrated gradients the shares of all tokens of all sides add up to the difference of the score and the one
    where all embeddings are zero.

    Args:
        seen: a scene; ``without``: what the model does without; ``score``: what is explained.
        method: how.
        passes: as of :func:`~regard.models.captured_attention.integrated_gradients`.

    Returns:
        The score, of integrated gradients also that where all embeddings are zero, and the shares of each side.

    Raises:
        RegardError: the model computes NaN or infinite values.
    """
    from regard.models.captured_attention import gradient_times_input, integrated_gradients

    task, told = seen.task, list[float]()

    def run() -> Tensor:
        with without.ablations.apply(task.recipe.model):
            found = score(seen.run())
        told.append(float(found.detach()))
        return found

    stacks = task.recipe.model.info.stacks
    baseline: float | None = None
    if method == "integrated_gradients":
        told.append(read_ablated(seen, without, lambda hidden_TD: float(score(hidden_TD))))
        baseline, found = integrated_gradients(task.model, tuple(stacks.values()), run, passes)
    else:
        found = {stack: gradient_times_input(task.model, stack, run) for stack in stacks.values()}
    shares = {side: found[stack].detach().cpu().numpy() for side, stack in stacks.items()}
    check_finite(np.array([told[0], baseline or 0.0]), *shares.values())
    return told[0], baseline, shares


def explained_score(seen: ModelInputs, place: int | None, label: str | None) -> Score:
    """The score to be explained.

    Args:
        seen: a scene.
        place: of a token among those that are written; of a tagger of any token of a word.
        label: of a classifier, or of a tagger; default: the most probable.

    Returns:
        The score. What is most probable is chosen when it is first asked for, and then stays what is meant.

    Raises:
        UsageError: the model says nothing of the kind, or not there.
    """
    writes = seen.task.info.writes
    if writes == "classes":
        if place is not None:
            raise UsageError("this model predicts nothing for a single token; name a label", "place")
        return _class(seen, label)
    if writes not in (*PIECES, "tags"):
        raise UsageError("this model predicts nothing that could be explained", "model")
    if place is None or place >= len(seen.written):
        raise UsageError(f"a token is named by its place, from 0 to {len(seen.written) - 1}", "place")
    if writes == "tags":
        return _tag(seen, place, label)
    if label is not None:
        raise UsageError("this model knows no labels; name a place", "label")
    return pieces_score(seen, [place])


def pieces_score(seen: ModelInputs, places: Sequence[int], ids: Sequence[int] = ()) -> Score:
    """The log-probability of pieces at some places, each given those before it.

    Args:
        seen: a scene of a model that predicts pieces.
        places: among those that are written; of a language model also the one after the last.
        ids: of the pieces; default: those written there; in a gap, and after the last, the most probable one.

    Raises:
        UsageError: nothing was predicted there.
    """
    task = seen.task
    assert reads_text(task)
    behind = int(task.info.writes == "continuation")
    if behind and 0 in places:
        raise UsageError("the first token was given: nothing came before it", "place")
    mask = task.mask if fills_words(task) else None
    written = [*(None if id == mask else id for id in seen.written_ids), None]
    chosen: list[int | None] = [*ids] or [written[place] for place in places]

    def score(hidden_TD: Tensor) -> Tensor:
        score_RV = piece_scores(task, hidden_TD)[[place - behind for place in places]].double()
        for row, id in enumerate(chosen):
            if id is None:
                chosen[row] = most_probable_piece(task, score_RV[row])
        return score_RV.log_softmax(1)[range(len(chosen)), chosen].sum()

    return score


def most_probable_piece(task: TextModel, score_V: Tensor) -> int:
    """The most probable piece; special symbols are excluded."""
    ordinary = task.target_tokenizer.ordinary
    return int(ordinary[score_V.detach().cpu().numpy()[ordinary].argmax()])


def _class(seen: ModelInputs, label: str | None) -> Score:
    """A label's log-probability, or a regression's value."""
    task = seen.task
    assert labels_examples(task)
    section, assets = task.recipe.classification, task.assets
    chosen = label_index(assets.labels, label)
    added_C = task.ngram_scores([np.array(seen.read_ids)])[0] if labels_texts(task) else np.zeros(1)

    def score(hidden_TD: Tensor) -> Tensor:
        score_C = task.model.head(hidden_TD, one_sequence(hidden_TD))[0].double()
        score_C = score_C + score_C.new_tensor(added_C)
        if section.kind == "regression":
            return score_C[0] / assets.fitted.temperature + assets.fitted.shift
        score_C = score_C / assets.fitted.temperature
        if not chosen:
            chosen.append(int(score_C.argmax()))
        probable_C = score_C.sigmoid().log() if section.kind == "multi" else score_C.log_softmax(0)
        return probable_C[chosen[0]]

    return score


def _tag(seen: ModelInputs, place: int, label: str | None) -> Score:
    """The tag of the word that a token belongs to."""
    task = seen.task
    assert tags_words(task)
    chosen = label_index(task.assets.labels, label)
    starts, lengths, words = _pieces_of_words(seen)
    word = words[place]
    if word is None:
        raise UsageError(f"the token at {place} is part of no word", "place")

    def score(hidden_TD: Tensor) -> Tensor:
        import torch

        from regard.nn.layout import Sequences
        from regard.tasks.tagging.tagger import head_of

        device, head = hidden_TD.device, head_of(task.model)
        places_R, lengths_R = (torch.tensor(side, device=device) for side in (starts, lengths))
        pieces = Sequences(places_R, lengths_R, len(starts), max(lengths), len(hidden_TD))
        score_RC = head.words(hidden_TD, pieces).double()
        together = one_sequence(score_RC)
        if not chosen:
            chosen.append(int(head.chain.decode(score_RC, together)[word]))
        return _tag_log_probability(head.chain, score_RC / task.assets.fitted.temperature, together, word, chosen[0])

    return score


def _tag_log_probability(chain: Chain, score_RC: Tensor, words: Sequences, word: int, tag: int) -> Tensor:
    """A tag's log-probability; with a CRF its marginal over all other tags."""
    from regard.nn.heads import NEVER, CRFTags

    if not isinstance(chain, CRFTags):
        return score_RC.log_softmax(1)[word, tag]

    only_RC = score_RC.clone()
    only_RC[word] = score_RC[word] + NEVER
    only_RC[word, tag] = score_RC[word, tag]
    tags_R = chain.decode(only_RC.detach(), words)
    # log Z restricted to this tag minus log Z: the path score that both losses contain cancels out
    return (chain.field(only_RC, tags_R, words) - chain.field(score_RC, tags_R, words))[0]


def _pieces_of_words(seen: ModelInputs) -> tuple[list[int], list[int], list[int | None]]:
    """The index of each word's first piece, its number of pieces, and the word of each token."""
    ends = [end for _, end in places_of(seen.source_text)]
    found = [None if token.special else bisect_left(ends, token.end) for token in seen.source]
    there = sorted({word for word in found if word is not None})
    starts = [found.index(word) for word in there]
    return starts, [found.count(word) for word in there], [None if w is None else there.index(w) for w in found]


def distinct_places(seen: ModelInputs, places: Sequence[int]) -> list[int]:
    """Places with distinct predictions: duplicates are removed, and a tagged word is represented by its first token."""
    there = list(dict.fromkeys(places))
    if seen.task.info.writes != "tags":
        return there
    words = _pieces_of_words(seen)[2]
    known = [words[place] if place < len(words) else None for place in there]
    return [place for n, place in enumerate(there) if known[n] is None or known.index(known[n]) == n]


def label_index(labels: tuple[str, ...], label: str | None, where: str = "label") -> list[int]:
    """The index of a label; empty if none is given."""
    if label is not None and label not in labels:
        raise UsageError(f"{label[:40]!r} is no label of this model; there are {', '.join(labels[:20])}", where)
    return [] if label is None else [labels.index(label)]


def is_number(task: Task) -> bool:
    """Whether the model is a regression."""
    return task.info.writes == "classes" and task.recipe.classification.kind == "regression"


@question
def head_ablation(
    models: Models, asked: Request, places: Places = (), label: Text | None = None, begin: Place = 0
) -> Answer:
    """Head ablation: the score explained by ``attribution``, without each head from ``begin`` on, as time allows.

    What is written stays what it is with all heads, and other changes are kept. Of several places the scores are
    summed: of consecutive pieces, the log-probability of all of them; of gaps,
    which are filled each by itself, that of all as they are meant. A tag is one score, however many its tokens are.

    Raises:
        RegardError: the model computes NaN or infinite values.
    """
    seen = inputs_of(models, asked)
    there: list[int | None] = [*distinct_places(seen, places)] or [None]
    scores = [explained_score(seen, place, label) for place in there]
    heads = every_head(seen.task.recipe.model.attention)
    if begin > len(heads):
        raise UsageError(f"there are {len(heads)} heads", "begin")

    def total(hidden_TD: Tensor) -> float:
        return sum(float(score(hidden_TD)) for score in scores)

    off = asked.changes.off
    ablations = (replace(asked.changes, off=some) for some in (off, *((*off, head) for head in heads[begin:])))
    whole, *rest = values_in_time((read_ablated(seen, one, total) for one in ablations), SECONDS)
    check_finite(np.array([whole, *rest]))
    values = {
        "score": whole,
        "logarithm": not is_number(seen.task),
        "heads": heads[begin : begin + len(rest)],
        "total": len(heads),
    }
    return values, {"without": np.array(rest, np.float32)}


def values_in_time(values: Iterator[T], seconds: float, first: int = 2, each: int = 1) -> list[T]:
    """The first values, and more of them, so many at a time, until time is up."""
    end = time.monotonic() + seconds
    found = list(islice(values, first))
    while time.monotonic() < end and (more := list(islice(values, each))):
        found += more
    return found


def read_ablated(seen: ModelInputs, without: AblationRequest, read: Callable[[Tensor], T]) -> T:
    """What is read from ``hidden_TD`` of a pass with these ablations."""
    import torch

    from regard.models.captured_attention import evaluating

    # inference mode would leave tensors in the scene's layout that no gradient can pass later
    with torch.no_grad(), evaluating(seen.task.model), without.ablations.apply(seen.task.recipe.model):
        return read(seen.run())
