"""``resolved.toml``: there and back, and every difference named."""

import pytest

from regard.config import Recipe, Training, TransformerSection
from regard.system.errors import Damaged, RegardError, UsageError
from regard.training.checkpoints import resolved
from regard.training.checkpoints.checkpoint import name, write_folder
from regard.training.progress import Progress
from tests.refusals import refused
from tests.training.toy import Fast, recipe


def test_a_field_of_another_choice_decides_nothing():
    sections = (TransformerSection(), TransformerSection(positions="rotary"))
    assert ["model.rotary_base" in resolved.recipe_fields(Recipe(model=one)) for one in sections] == [False, True]


def fields(**more):
    return {**resolved.recipe_fields(recipe()), "chosen.steps": 40, "fingerprint.data": "ab", **more}


def test_there_and_back(tmp_path):
    resolved.write(tmp_path, fields(**{"chosen.product": "bf16 switch", "data.weights": (0.5, 2.0)}), Fast())
    found = resolved.read_fields(tmp_path)
    wanted = fields(**{"chosen.product": "bf16 switch", "data.weights": (0.5, 2.0)})
    assert found == {name: value for name, value in wanted.items() if value is not None}
    resolved.check(found, wanted)


@pytest.mark.parametrize(
    ("name", "changed", "allowed"),
    [
        ("model.d_model", Recipe(model=TransformerSection(d_model=256)), False),
        ("model.d_k", Recipe(model=TransformerSection(d_k=8)), False),
        ("model.dropout", Recipe(model=TransformerSection(dropout=0.3)), True),
        ("training.rate", Recipe(training=Training(rate=1e-4)), True),
        ("training.steps", Recipe(training=Training(steps=9)), True),
        ("training.minutes", Recipe(training=Training(minutes=3)), False),
        ("training.tokens", Recipe(training=Training(tokens=512)), False),
        ("recipe.seed", Recipe(seed=2), False),
    ],
)
def test_a_changed_field_is_named_and_some_can_be_allowed(tmp_path, name, changed, allowed):
    resolved.write(tmp_path, resolved.recipe_fields(Recipe()), Fast())
    old, new = resolved.read_fields(tmp_path), resolved.recipe_fields(changed)
    with refused(RegardError, name, "output") as caught:
        resolved.check(old, new)
    assert (f"allow_mismatch=['{name}']" in str(caught.value)) is allowed
    with pytest.raises(RegardError):  # and back again, where a field is no longer set
        resolved.check({k: v for k, v in new.items() if v is not None}, old | {name: None})
    told = []
    if allowed:
        resolved.refuse_others([name])
        resolved.check(old, new, allow=(name,), warn=told.append)
        assert len(told) == 1
    else:
        with refused(UsageError, "allow_mismatch"):
            resolved.refuse_others([name])
        with refused(RegardError, name):
            resolved.check(old, new, allow=(name,))


def test_what_can_be_allowed_is_a_field_and_what_does_not_change_the_weights_may_change():
    known = {*resolved.recipe_fields(Recipe()), "chosen.threads"}
    known |= {f"fingerprint.{of}" for of in ("torch", "processor", "kernels")}
    assert known > resolved.ALLOWED
    with refused(UsageError, "allow_mismatch", "training.rate"):
        resolved.refuse_others(["training.rat"])
    old = resolved.recipe_fields(Recipe())
    resolved.check(old, resolved.recipe_fields(Recipe(training=Training(keep=9, save_every=3, max_skipped=2))))
    told = []
    resolved.check({"fingerprint.torch": "2.13"}, {"fingerprint.torch": "2.14"}, warn=told.append)
    assert told == ["fingerprint.torch: this run has '2.13', now it is '2.14'"]


def test_minutes_do_not_matter_once_the_steps_are_given():
    """So a run of so many minutes can be made longer."""
    old = resolved.recipe_fields(Recipe(training=Training(minutes=5)))
    new = resolved.recipe_fields(Recipe(training=Training(steps=9)))
    with refused(RegardError, "training.steps"):
        resolved.check(old, new)
    resolved.check(old, new, allow=["training.steps"])


def test_what_is_known_of_a_run_that_lost_the_file(tmp_path):
    assert resolved.known_fields(tmp_path) == ({}, None)
    stored = {name: value for name, value in fields(**{"data.weights": (0.5, 2.0)}).items() if value is not None}
    folder = tmp_path / "checkpoints"
    folder.mkdir()
    for step, said in ((1, {**stored, "chosen.steps": 39}), (2, stored), (3, {})):
        write_folder(folder / name(step), {"state.json": [Progress(step).dump(said)]}, Fast())
    for content in (None, b"", b"format = ", b"\xff"):
        if content is not None:
            (tmp_path / resolved.NAME).write_bytes(content)
        assert resolved.known_fields(tmp_path) == (stored, folder / name(2))
    (folder / name(2) / "state.json").write_bytes(b"{}")
    assert resolved.known_fields(tmp_path)[0]["chosen.steps"] == 39
    (folder / name(1) / "manifest.json").unlink()
    with refused(Damaged, "resolved.toml", "resume"):
        resolved.known_fields(tmp_path)
    resolved.write(tmp_path, stored, Fast())
    assert resolved.known_fields(tmp_path) == (stored, None)


def test_a_run_of_an_earlier_version_that_has_what_left_is_refused():
    resolved.check({"tagging.adversarial": 0.0}, {})
    with refused(RegardError, "tagging.adversarial", "choose another output="):
        resolved.check({"tagging.adversarial": 0.5}, {})


def test_a_newer_or_broken_file_is_refused(tmp_path):
    (tmp_path / resolved.NAME).write_text("format = 2\n")
    with refused(RegardError, "resolved.toml"):
        resolved.read_fields(tmp_path)
    (tmp_path / resolved.NAME).write_bytes(b"format = \xff")
    with refused(Damaged, "resolved.toml"):
        resolved.read_fields(tmp_path)
