"""Every number of ``walk.json`` once more, by plain loops over single sentences, tokens and heads."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import torch

from regard.models.ablation import Ablations, Head
from regard.models.captured_attention import pack_sentences, weights_of
from regard.runs.demo.grammar import Pair, classic, word_spans
from regard.runs.demo.grammar.phrases import PRONOUN
from regard.tasks.translation.translator import Translation

GUESS, HALF = 0.7, 0.5


def plain_right(model: Translation, pairs: Iterable[Pair], off: Sequence[Head] = ()) -> int:
    """How many pronouns are right: each sentence alone, its probabilities after the words before the pronoun."""
    right = 0
    for pair in pairs:
        behind = f" {PRONOUN[pair.pronoun.antecedent_gender]} "
        head = pair.target[: pair.target.index(" weil ") + len(" weil")]
        assert pair.target[len(head) :].startswith(behind)
        ids = model.vocabularies.target.encode(head).ids
        with Ablations(off=tuple(off)).apply(model.recipe.model), torch.inference_mode():
            both, network = model.vocabularies, model.model.eval()
            read = pack_sentences([[*both.source.encode(pair.source).ids, both.source.end]], torch.device("cpu"))
            written = pack_sentences([[both.target.start, *ids]], torch.device("cpu"))
            score_V = network.scores(network.decoder(written, network.encoder(read), read))[-1]
        ids_of = {gender: both.target.encode(f"{head} {word}").ids[len(ids)] for gender, word in PRONOUN.items()}
        chosen = max(ids_of, key=lambda gender: float(score_V[ids_of[gender]]))
        right += chosen == pair.pronoun.antecedent_gender
    return right


def tokens_of_word(offsets: Sequence[tuple[int, int]], sentence: str, word: int) -> list[int]:
    """The tokens that lie in a word, with the space before it."""
    begin, end = word_spans(sentence)[word]
    return [place for place, (left, right) in enumerate(offsets) if left < end and right > begin]


def plain_shares(model: Translation, pairs: Sequence[Pair], head: Head) -> dict[str, float]:
    """Where the pronoun looks in the mean: of each of its tokens, what it gives to the tokens of a word."""
    sums = dict.fromkeys(("antecedent", "rival", "nouns", "chance", "pronoun"), 0.0)
    both = model.vocabularies
    for pair in pairs:
        source, target, told = both.source.encode(pair.source), both.target.encode(pair.target), pair.pronoun
        read, written = [*source.ids, both.source.end], [both.target.start, *target.ids]
        weights = weights_of(model.model, model.recipe.model.family, [read], [written])
        weight_QK = weights[head.kind][head.layer - 1][0][head.head - 1].double().tolist()
        text, offsets = (pair.source, source.offsets) if head.kind == "encoder" else (pair.target, target.offsets)
        german = {one: other for one, other in pair.alignment if one in pair.nouns}

        def share(query: int, key: int) -> float:
            rows = tokens_of_word(offsets, text, query)  # noqa: B023
            columns = tokens_of_word(source.offsets, pair.source, key)  # noqa: B023
            return sum(weight_QK[row][column] for row in rows for column in columns) / len(rows)  # noqa: B023

        cross = head.kind == "cross"
        who = told.target_word if cross else told.source_word
        sums["antecedent"] += sum(share(who, word) for word in told.antecedent_words)
        sums["rival"] += sum(share(who, word) for word in told.rival_words)
        sums["nouns"] += sum(share(who, word) for word in pair.nouns) / len(pair.nouns)
        others = [(one, other) for one in pair.nouns for other in pair.nouns if one != other]
        given = [share(german[one] if cross else one, other) for one, other in others]
        sums["chance"] += sum(given) / len(given)
        sums["pronoun"] += share(who, told.source_word) if cross else 0.0
    return {name: total / len(pairs) for name, total in sums.items()}


def plain_walk(model: Translation, pairs: Sequence[Pair], guess: float = GUESS) -> dict[str, Any]:
    """All that ``walk.json`` says of a model but the names of weights and version."""
    places = [
        Head(kind, layer, head)
        for kind, (layers, heads) in model.recipe.model.attention.items()
        for layer in range(1, layers + 1)
        for head in range(1, heads + 1)
    ]
    known: dict[frozenset[Head], int] = {}

    def right(off: Iterable[Head]) -> int:
        heads = frozenset(off)
        if heads not in known:
            known[heads] = plain_right(model, pairs, list(heads))
        return known[heads]

    genders = [pair.pronoun.antecedent_gender for pair in pairs]
    shares = {place: None if place.kind == "decoder" else plain_shares(model, pairs, place) for place in places}
    steps: list[list[Head]] = []
    off: list[Head] = []
    while right(off) > guess * len(pairs) and len(off) < len(places):
        rest = [place for place in places if place not in off]
        off = [*off, min(rest, key=lambda place: right([*off, place]))]
        steps.append(off)
    smallest = None
    if right(off) <= guess * len(pairs):
        for place in off[:-1]:
            fewer = [one for one in off if one != place]
            if right(fewer) <= guess * len(pairs):
                off = fewer
        smallest = {"heads": list(map(vars, off)), "right": right(off)}
    lookers = [place for place in places if shares[place] and shares[place]["antecedent"] > HALF]

    def best(kind: str) -> dict[str, Any]:
        def informative(place: Head) -> float:
            return max(shares[place]["antecedent"] - shares[place]["rival"], shares[place]["pronoun"])

        return vars(max((place for place in places if place.kind == kind), key=informative))

    annotated = zip(classic(), ("animal", "street"), ("street", "animal"), ("es", "sie"), strict=True)
    return {
        "pronoun": "it",
        "sentences": [
            {"source": pair.source, "target": pair.target, "antecedent": noun, "rival": other, "pronoun": word}
            for pair, noun, other, word in annotated
        ],
        "encoder": best("encoder"),
        "cross": best("cross"),
        "guess": guess,
        "half": HALF,
        "tolerance": 0.01,
        "study": {
            "sentences": len(pairs),
            "right": right([]),
            "commonest": max(genders.count(gender) for gender in genders),
            "heads": [{"head": vars(one), "shares": shares[one], "right": right([one])} for one in places],
            "steps": [{"heads": list(map(vars, some)), "right": right(some)} for some in steps],
            "smallest": smallest,
            "without_lookers": {"heads": list(map(vars, lookers)), "right": right(lookers)},
            "spare": sum(100 * (right([]) - right([one])) <= len(pairs) for one in places),
        },
    }


def leaves(value: Any, where: str = "") -> Iterator[tuple[str, Any]]:
    """Every value inside dictionaries and lists by its path, and the length of every list."""
    if isinstance(value, dict | list):
        yield f"{where}.length", len(value)
        for name, inner in value.items() if isinstance(value, dict) else enumerate(value):
            yield from leaves(inner, f"{where}.{name}")
    else:
        yield where, value
