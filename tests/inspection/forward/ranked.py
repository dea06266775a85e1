"""The most probable pieces of a pass, by position."""

from regard.inspection.forward.inputs import ModelInputs
from regard.inspection.forward.outputs import Candidate, candidates, scores


def top_candidates(seen: ModelInputs, k: int = 5) -> list[list[Candidate]]:
    return candidates(seen.task, scores(seen), k)
