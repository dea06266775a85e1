"""Tables of a model with further pieces: the rows that it had, means of their parts, the start symbol's row last."""

from pathlib import Path
from typing import Any

import pytest
import torch

from regard.models.embedding_rows import extend_tables
from regard.models.store import named_tensors
from regard.tasks.model_folder import MODEL
from regard.text.tokenizers.vocabulary import PairCounter
from tests.tasks.small_tasks import put, recurrent, translator
from tests.tasks.translation.test_adapting import separate

PAIRS = [("An infarction of the heart, infarctions.", "Ein Herzinfarkt, zwei Herzinfarkte.")] * 3


def untied() -> Any:
    """A translator with tables of its own for both sides, and a learned number for each piece."""
    return translator(tie="two", output_bias=True)


@pytest.mark.one_of(2)
@pytest.mark.parametrize("make", [translator, separate, untied, recurrent])
def test_further_rows_are_the_means_of_the_rows_of_their_parts(tmp_path: Path, make: Any) -> None:
    begun = make()
    known, counter = begun.assets, PairCounter(begun.assets.joint)
    counter.add(PAIRS)
    extended = counter.extend(known, 10)
    assert extended.joint == known.joint
    assert extended.sizes == tuple(size + 10 for size in known.sizes)
    model = type(begun).build(begun.recipe, extended.sizes)
    names = extend_tables(put(tmp_path / "begun", begun) / MODEL, model, known, extended)
    old, new = named_tensors(begun.model), named_tensors(model)
    assert names == {name for name in old if old[name].shape != new[name].shape}
    for name in names:
        was, now = old[name].double(), new[name].double()
        before, after = (one.source if name.startswith("encoder") else one.target for one in (known, extended))
        assert torch.equal(now[: before.size], was[: before.size])
        assert torch.equal(now[after.size :], was[before.size :])
        for id in range(before.size, after.size):
            parts = before.pieces_of(after.names[id])
            assert len(parts) > 1
            torch.testing.assert_close(now[id], sum(was[part] for part in parts) / len(parts), atol=1e-6, rtol=0)
