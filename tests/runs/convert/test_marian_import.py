"""Marian's own models: scores and tokens are those of its equations; what is not supported is refused by name."""

import gzip
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import regard
from regard.runs.conversion import import_model
from regard.runs.convert.kinds import read_foreign_model
from regard.system.errors import RegardError, UsageError
from tests.models.small_models import assert_near
from tests.refusals import refused
from tests.runs.convert import marian_folders as folders
from tests.runs.convert.marian_equations import Marian
from tests.runs.convert.small_peers import packed
from tests.runs.convert.translator_folders import sentences

TEXTS = sentences(12, seed=9)


@pytest.fixture(scope="module", params=folders.KINDS)
def both(request, tmp_path_factory) -> tuple[str, Marian, Path]:
    """The model as it is written there, and the folder of ours."""
    folder = tmp_path_factory.mktemp(request.param)
    peer = folders.write(request.param, folder)
    import_model(folder, folder / "ours")
    return request.param, peer, folder / "ours"


@pytest.mark.one_of(3)
def test_scores_are_those_of_the_equations(both) -> None:
    _, peer, folder = both
    model = regard.load(folder, "cpu").model
    source, target = [5, 2, 40, 17, 1, 99, 0], [7, 8, 100, 3]
    memory_SD = model.encoder(packed([torch.tensor(source)]))
    assert_near(memory_SD, torch.from_numpy(peer.encode(source)), 1e-5)
    read = packed([torch.tensor([model.pieces, *target])])
    found = model.scores(model.decoder(read, memory_SD, packed([torch.tensor(source)])))
    assert_near(found, torch.from_numpy(peer.scores(target, peer.encode(source))), 1e-5)


@pytest.mark.one_of(6, minutes=0.03)
def test_tokens_are_those_of_the_equations(both) -> None:
    """Of the engine, and of the model itself."""
    kind, peer, folder = both
    ours = regard.load(folder, "cpu")
    if kind == "opus":
        ours = ours.between(to="fr")
    found = ours.nbest(TEXTS, beam=1, max_extra=5)
    ours.engine = None
    for text, best, by_torch in zip(TEXTS, found, ours.nbest(TEXTS, beam=1, max_extra=5), strict=True):
        assert best[0].tokens == by_torch[0].tokens
        read = [id for id, _, _ in ours.reads(text)[1]]
        assert read[-1] == 0
        assert (read[0] == 3) == (kind == "opus")  # the label
        labels = {2, 3} if kind == "opus" else set()
        expected = peer.greedy(read, len(read) + 5)
        if not labels & {*expected}:
            assert [*best[0].tokens, *[0] * best[0].finished] == expected


def test_what_the_folder_says_is_kept(tmp_path: Path) -> None:
    for kind in ("opus", "student"):
        (tmp_path / kind).mkdir()
        folders.write(kind, tmp_path / kind)
    opus, student = (read_foreign_model(tmp_path / kind) for kind in ("opus", "student"))
    assert (opus.recipe.decoding.beam, student.recipe.decoding.beam) == (6, 1)
    assert (student.recipe.text.source_language, student.recipe.text.target_language) == ("en", "de")
    assert {*opus.tokenizer.languages.ids} == {"deu", "fra"}
    assert "model.npz" in (
        import_model(tmp_path / "opus", tmp_path / "ours") and (tmp_path / "ours/card.md").read_text()
    )


@pytest.mark.one_of(5)
@pytest.mark.parametrize(
    "settings",
    [
        {"type": "s2s"},
        {"transformer-decoder-autoreg": "average-attention"},
        {"transformer-decoder-autoreg": "rnn"},
        {"transformer-ffn-activation": "tanh"},
        {"transformer-ffn-depth": 3},
        {"transformer-preprocess": "n"},
        {"transformer-postprocess-emb": "h"},
        {"transformer-train-position-embeddings": True},
        {"transformer-tied-layers": [1, 1]},
        {"transformer-decoder-dim-ffn": 48},
        {"lemma-dim-emb": 8},
        {"right-left": True},
        {"transformer-heads": "many"},
        {"enc-depth": 0},
        {"dim-emb": "~"},
    ],
    ids=lambda settings: "-".join(map(str, *settings.items())),
)
def test_settings_that_are_not_supported_are_refused_by_name(settings: dict[str, Any], tmp_path: Path) -> None:
    folders.write("opus", tmp_path)
    held = {**folders.SETTINGS, **settings}
    content = {"special:model.yml": np.frombuffer(folders.yaml(held).encode() + b"\0", np.int8)}
    (tmp_path / "model.npz").write_bytes(folders.npz(content))
    name = "dec-cell" if "rnn" in settings.values() else next(iter(settings))
    with refused(RegardError, "model.npz", name):
        read_foreign_model(tmp_path)


def test_layers_and_tensors_that_do_not_fit_are_refused(tmp_path: Path) -> None:
    peer = folders.write("opus", tmp_path)
    tensors = {name: array.astype(np.float32) for name, array in peer.tensors.items()}
    settings = np.frombuffer(folders.yaml(peer.settings).encode(), np.int8)

    def refuse(where: str, word: str, **changes: Any) -> None:
        held = {**tensors, "special:model.yml": settings, **changes}
        (tmp_path / "model.npz").write_bytes(folders.npz({n: a for n, a in held.items() if a is not None}))
        with refused(RegardError, where, word):
            read_foreign_model(tmp_path)

    refuse("model.npz", "Wpos", Wpos=np.zeros((4, 16), np.float32))
    refuse("model.npz", "encoder_l2_self_Wq", encoder_l2_self_Wq=None)
    refuse("model.npz", "encoder.layers.0.attention.query", encoder_l1_self_Wq=np.zeros((16, 8), np.float32))
    refuse("model.npz", "encoder.input.tokens", Wemb=np.zeros((50, 8), np.float32))
    refuse(
        "source.spm", "50", Wemb=np.zeros((50, 16), np.float32), decoder_ff_logit_out_b=np.zeros((1, 50), np.float32)
    )
    refuse("model.npz", "finite", encoder_l1_self_bq=np.full((1, 16), np.nan, np.float32))
    refuse("model.npz", "Wemb", Wemb=np.zeros(3, np.float32))


def test_folders_that_are_not_whole_are_refused(tmp_path: Path) -> None:
    folders.write("opus", tmp_path)
    with refused(UsageError, "task"):
        read_foreign_model(tmp_path, "tagging")
    (tmp_path / "source.spm").rename(tmp_path / "source.bpe")
    with refused(RegardError, "opus.vocab.yml", "BPE"):
        read_foreign_model(tmp_path)
    (tmp_path / "opus.vocab.yml").unlink()
    (tmp_path / "source.bpe").rename(tmp_path / "source.spm")
    with refused(RegardError, "opus.vocab.yml"):
        read_foreign_model(tmp_path)
    (tmp_path / "decoder.yml").unlink()
    (tmp_path / "config.yml").write_text("beam-size: 1\n")
    with refused(RegardError, tmp_path.name, ".spm"):
        read_foreign_model(tmp_path)
    (tmp_path / "model2.npz").write_bytes(b"")
    with refused(RegardError, tmp_path.name, "model2.npz"):
        read_foreign_model(tmp_path)


def test_packed_files_are_to_be_unpacked(tmp_path: Path) -> None:
    folders.write("student", tmp_path)
    whole = tmp_path / "model.ende.intgemm.alphas.bin"
    Path(f"{whole}.gz").write_bytes(gzip.compress(whole.read_bytes()))
    whole.unlink()
    with refused(RegardError, f"{whole.name}.gz", "unpack"):
        read_foreign_model(tmp_path)


@pytest.mark.one_of(2, minutes=0.05)
@pytest.mark.parametrize("kind", ["student", "apart"])
def test_a_shortlist_is_kept_and_used_where_it_is_asked_for(kind: str, tmp_path: Path) -> None:
    """Tokens are those of the equations with no other pieces; without it nothing changes."""
    peer = folders.write(kind, tmp_path)
    target = len(peer.table("decoder"))
    entries = [[(7 * piece + 3 * k) % target for k in range(piece % 4)] for piece in range(120)]
    content = folders.shortlist(entries, frequent=20)
    (tmp_path / "lex.50.50.ende.s2t.bin").write_bytes(content)
    import_model(tmp_path, tmp_path / "ours")
    assert (tmp_path / "ours/shortlist.bin").read_bytes() == content
    ours = regard.load(tmp_path / "ours", "cpu")
    short = ours.with_settings(["decoding.shortlist=true"])
    differ = 0
    for text, whole, best in zip(TEXTS, ours.nbest(TEXTS, 1, 1), short.nbest(TEXTS, 1, 1, max_extra=5), strict=True):
        read = [id for id, _, _ in ours.reads(text)[1]]
        kept = {*range(20), *(target for id in read for target in entries[id]), *(read if kind == "student" else ())}
        expected = peer.greedy(read, len(read) + 5, kept)
        assert [*best[0].tokens, *[0] * best[0].finished] == expected
        differ += whole[0].tokens[:3] != best[0].tokens[:3]
    assert differ
    for setting, word in (("text.joint=true", "text"), ("decoding.beam=0", "beam"), ("decoding.beams=2", "beam")):
        with refused(UsageError, None, word):
            ours.with_settings([setting])
    ours.engine = None
    with refused(UsageError, "decoding.shortlist", "engine"):
        ours.with_settings(["decoding.shortlist=true"]).translate("a")


def test_a_shortlist_leaves_where_further_pieces_come(tmp_path: Path) -> None:
    folders.write("student", tmp_path)
    (tmp_path / "lex.50.50.ende.s2t.bin").write_bytes(folders.shortlist([[5, 6]] * 120, frequent=20))
    import_model(tmp_path, tmp_path / "ours")
    for code in ("en", "de"):
        (tmp_path / f"a.{code}").write_text("".join(f"infarction {code} {n}\n" for n in range(60)))
    where = {"output": tmp_path / "more", "start_from": tmp_path / "ours", "device": "cpu", "threads": 1}
    regard.train(tmp_path / "a.en", tmp_path / "a.de", extend_vocabulary=9, steps=1, despite_check=True, **where)
    made = regard.load(tmp_path / "more", "cpu")
    assert made.assets.shortlist is None
    assert made.assets.source.size > 120


def test_damaged_shortlists_are_refused_and_so_are_several(tmp_path: Path) -> None:
    folders.write("student", tmp_path)
    path, whole = tmp_path / "lex.50.50.ende.s2t.bin", folders.shortlist([[5, 6]] * 120, 9)
    for name in (path.name, "lex.50.50.deen.s2t.bin", "lex.50.50.ende.s2t.bin.gz"):
        (tmp_path / name).write_bytes(whole)
    with refused(RegardError, tmp_path, "lex.50.50.deen.s2t.bin, lex.50.50.ende.s2t.bin;"):
        read_foreign_model(tmp_path)
    for name in ("lex.50.50.deen.s2t.bin", f"{path.name}.gz"):
        (tmp_path / name).unlink()
    cut, far = whole[:-4], folders.shortlist([[5, 120]] * 120, 9)
    back = whole[:56] + (99).to_bytes(8, "little") + whole[64:]
    for content in (
        b"",
        whole[:40],
        b"x" + whole[1:],
        cut,
        whole + bytes(4),
        far,
        back,
        folders.shortlist([[5]] * 9, 9),
    ):
        path.write_bytes(content)
        with refused(RegardError, path.name):
            read_foreign_model(tmp_path)
    path.unlink()
    import_model(tmp_path, tmp_path / "ours")
    with refused(UsageError, "decoding.shortlist", "list"):
        regard.load(tmp_path / "ours", "cpu").with_settings(["decoding.shortlist=true"]).translate("a")
