"""Packages of Argos Translate: a model, its SentencePiece model and languages; hostile ones end in a sentence."""

import io
import json
import random
import shutil
import zipfile
from functools import partial
from pathlib import Path

import pytest

import regard
from regard.runs.conversion import export_model, import_model
from regard.runs.convert.argos import read_argos
from regard.system.errors import RegardError
from tests.refusals import refused
from tests.runs.convert import ctranslate2_folders as folders
from tests.runs.convert.ctranslate2_folders import refusal
from tests.runs.convert.translator_folders import piece_model, sentencepiece, sentences

SAID = {"from_code": "en", "to_code": "de", "package_version": "1.9", "argos_version": "1.9"}
ROOT = "translate-en_de-1_9"


def package_parts(folder: Path) -> dict[str, bytes]:
    """The files of a package, by name; the model is made in the folder."""
    model = piece_model("unigram")
    core = sentencepiece.SentencePieceProcessor(model_proto=model)
    pieces = [core.id_to_piece(id) for id in range(3, core.piece_size())]
    folders.write(folder / "model", names=["<unk>", "<s>", "</s>", *pieces, "__de__"])
    files = {f"{ROOT}/model/{path.name}": path.read_bytes() for path in (folder / "model").iterdir()}
    return {
        f"{ROOT}/metadata.json": json.dumps(SAID).encode(),
        f"{ROOT}/sentencepiece.model": model,
        f"{ROOT}/stanza/big.pt": bytes(1000),
        **files,
    }


@pytest.fixture(scope="module")
def parts(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    """The files of a package, by name."""
    return package_parts(tmp_path_factory.mktemp("argos"))


def pack(path: Path, parts: dict[str, bytes], kind: int = zipfile.ZIP_DEFLATED) -> Path:
    with zipfile.ZipFile(path, "w", kind) as package:
        for name, content in parts.items():
            package.writestr(name, content)
    return path


def test_texts_are_translated_as_by_argos(parts: dict[str, bytes], tmp_path: Path) -> None:
    package = pack(tmp_path / "en_de.argosmodel", parts)
    told: list[str] = []
    import_model(package, tmp_path / "ours", tell=told.append)
    assert not told
    ours = regard.load(tmp_path / "ours", "cpu").with_settings(["decoding.length_penalty=0.0"])
    assert (ours.recipe.text.source_language, ours.recipe.text.target_language) == ("en", "de")
    with zipfile.ZipFile(package) as held:
        held.extractall(tmp_path / "unpacked")
    core = sentencepiece.SentencePieceProcessor(model_proto=parts[f"{ROOT}/sentencepiece.model"])
    texts = sentences(30)
    read = [core.encode(text, out_type=str) for text in texts]
    theirs = folders.translated(tmp_path / "unpacked" / ROOT / "model", read, 4)
    alike = 0
    for one, (tokens, score) in zip(ours.nbest(texts, beam=4, max_extra=40), theirs, strict=True):
        if one[0].finished and len(tokens) < 40:
            assert one[0].text == "".join(tokens).replace("▁", " ").removeprefix(" ")
            assert one[0].score == pytest.approx(score, abs=2e-4)
            alike += 1
    assert alike > 10
    assert export_model(tmp_path / "ours", tmp_path / "back", "ctranslate2") == []
    import_model(tmp_path / "back", tmp_path / "again")
    assert regard.load(tmp_path / "again", "cpu").translate(texts) == ours.translate(texts)
    import_model(tmp_path / "unpacked" / ROOT, tmp_path / "of folder")
    weights = [(tmp_path / name / "model.safetensors").read_bytes() for name in ("ours", "of folder")]
    assert weights[0] == weights[1]


def test_a_target_prefix_begins_every_translation(parts: dict[str, bytes], tmp_path: Path) -> None:
    said = json.dumps({**SAID, "target_prefix": "__de__"}).encode()
    import_model(pack(tmp_path / "a.argosmodel", {**parts, f"{ROOT}/metadata.json": said}), tmp_path / "ours")
    ours = regard.load(tmp_path / "ours", "cpu")
    assert [ours.target_tokenizer.names[id] for id in ours.symbols.prefix] == ["__de__"]
    assert not any("__de__" in text for text in ours.translate(sentences(10)))
    (note,) = export_model(tmp_path / "ours", tmp_path / "back", "ctranslate2")
    assert "__de__" in note


def hostile(parts: dict[str, bytes], path: Path, draws: random.Random) -> None:
    """A package that is cut, has other bytes, lies about sizes, or has files that it should not have."""
    kind = draws.randrange(7)
    if kind == 0:
        outside = draws.choice(["../x", "/etc/x", f"{ROOT}/../../x", "..\\x", f"{ROOT}/model/../../../x"])
        pack(path, {**parts, outside: b"x"})
    elif kind == 1:
        bomb = draws.choice(["model/model.bin", "sentencepiece.model", "metadata.json", "model/config.json"])
        pack(path, {**parts, f"{ROOT}/{bomb}": bytes(40 << 20)})
    elif kind == 2:
        lacking = draws.choice(sorted({*parts} - {f"{ROOT}/stanza/big.pt", f"{ROOT}/model/config.json"}))
        pack(path, {name: content for name, content in parts.items() if name != lacking})
    elif kind == 3:
        code = draws.choice([None, 3, "a b", "../x", "x" * 100])
        pack(path, {**parts, f"{ROOT}/metadata.json": json.dumps({**SAID, "to_code": code}).encode()})
    elif kind == 4:
        name = draws.choice([name for name in parts if "stanza" not in name and "config" not in name])
        pack(path, {**parts, name: draws.randbytes(draws.randrange(2000))})
    else:
        written = io.BytesIO()
        with zipfile.ZipFile(written, "w") as package:
            for name, content in parts.items():
                package.writestr(name, content)
        content = bytearray(written.getvalue())
        if kind == 5:
            content = content[: draws.randrange(len(content))]
        else:
            begin = content.rindex(b"PK\1\2")
            for _ in range(4):
                content[draws.randrange(begin, len(content) - 1)] ^= draws.randrange(1, 256)
        path.write_bytes(content)


@pytest.mark.parametrize("count", [12, pytest.param(50, marks=pytest.mark.long(0.1))])
def test_hostile_packages_end_in_a_sentence(parts: dict[str, bytes], tmp_path: Path, count: int) -> None:
    path, errors = tmp_path / "in" / "a.argosmodel", 0
    for seed in range(count):
        shutil.rmtree(path.parent, ignore_errors=True)
        path.parent.mkdir()
        hostile(parts, path, random.Random(seed))
        error = refusal(partial(read_argos, path))
        assert error is None or ("\n" not in str(error) and (error.where or "").startswith(str(path))), error
        errors += error is not None
        assert list(path.parent.iterdir()) == [path]
        assert [path.name for path in tmp_path.iterdir()] == ["in"]
    assert errors > 0.8 * count


def test_bpe_of_moses_is_refused_by_name(parts: dict[str, bytes], tmp_path: Path) -> None:
    other = {name.replace("sentencepiece.model", "bpe.model"): content for name, content in parts.items()}
    (tmp_path / "other.zip").write_bytes(b"PK")
    with refused(RegardError, "other.zip", "Argos"):
        import_model(tmp_path / "other.zip", tmp_path / "ours")
    with refused(RegardError, "a.argosmodel", "bpe.model"):
        read_argos(pack(tmp_path / "a.argosmodel", other))
