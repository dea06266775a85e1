"""``resolved.toml``: there and back, and every difference named."""

import pytest
from toy import Fast, recipe

from regard.config import Model, Recipe, Training
from regard.errors import RegardError
from regard.training import resolved


def fields(**more):
    return {**resolved.recipe_fields(recipe()), "chosen.steps": 40, "fingerprint.data": "ab", **more}


def test_there_and_back(tmp_path):
    resolved.write(tmp_path, fields(**{"chosen.product": "bf16 switch", "data.weights": (0.5, 2.0)}), Fast())
    found = resolved.read(tmp_path)
    wanted = fields(**{"chosen.product": "bf16 switch", "data.weights": (0.5, 2.0)})
    assert found == {name: value for name, value in wanted.items() if value is not None}
    resolved.check(found, wanted)


@pytest.mark.parametrize(
    ("name", "changed"),
    [
        ("model.d_model", Recipe(model=Model(d_model=256))),
        ("model.d_k", Recipe(model=Model(d_k=8))),
        ("training.rate", Recipe(training=Training(rate=1e-4))),
        ("training.minutes", Recipe(training=Training(minutes=3))),
        ("recipe.seed", Recipe(seed=2)),
    ],
)
def test_a_changed_field_is_named_and_can_be_allowed(tmp_path, name, changed):
    resolved.write(tmp_path, resolved.recipe_fields(Recipe()), Fast())
    old, new = resolved.read(tmp_path), resolved.recipe_fields(changed)
    with pytest.raises(RegardError, match=f"--allow-mismatch {name}") as caught:
        resolved.check(old, new)
    assert caught.value.where == name
    with pytest.raises(RegardError):  # and back again, where a field is no longer set
        resolved.check({k: v for k, v in new.items() if v is not None}, old | {name: None})
    told = []
    resolved.check(old, new, allow=(name,), warn=told.append)
    assert len(told) == 1


def test_what_does_not_change_the_weights_may_change():
    old = resolved.recipe_fields(Recipe())
    resolved.check(old, resolved.recipe_fields(Recipe(training=Training(keep=9, save_every=3, max_skipped=2))))


def test_another_torch_is_only_a_warning():
    told = []
    resolved.check({"fingerprint.torch": "2.13"}, {"fingerprint.torch": "2.14"}, warn=told.append)
    assert told == ["fingerprint.torch: this run has '2.13', now it is '2.14'"]


def test_a_newer_or_broken_file_is_refused(tmp_path):
    (tmp_path / resolved.NAME).write_text("format = 2\n")
    with pytest.raises(RegardError, match="newer Regard"):
        resolved.read(tmp_path)
    (tmp_path / resolved.NAME).write_bytes(b"format = \xff")
    with pytest.raises(RegardError, match="cannot be read"):
        resolved.read(tmp_path)
