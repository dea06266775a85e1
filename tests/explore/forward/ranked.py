"""The most probable pieces of a pass, by position."""

from regard.explore.forward.inputs import ModelInputs
from regard.explore.forward.outputs import Candidate, candidates, scores


def top_candidates(seen: ModelInputs, k: int = 5) -> list[list[Candidate]]:
    return candidates(seen.task, scores(seen), k)
