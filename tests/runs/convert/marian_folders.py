"""Folders as Marian, OPUS-MT and Firefox have them, written by hand: small models, random weights."""

import io
import struct
import zipfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tests.runs.convert.marian_equations import Marian
from tests.runs.convert.translator_folders import piece_model, pieces_of

Arrays = dict[str, NDArray[Any]]
SETTINGS: dict[str, Any] = {
    "bert-type-vocab-size": 2,
    "dec-cell": "gru",
    "dec-depth": 2,
    "dim-emb": 16,
    "enc-depth": 2,
    "input-types": [],
    "layer-normalization": False,
    "lemma-dim-emb": 0,
    "output-omit-bias": False,
    "right-left": False,
    "tied-embeddings": False,
    "tied-embeddings-all": True,
    "tied-embeddings-src": False,
    "transformer-decoder-autoreg": "self-attention",
    "transformer-dim-ffn": 24,
    "transformer-ffn-activation": "swish",
    "transformer-ffn-depth": 2,
    "transformer-heads": 2,
    "transformer-no-projection": False,
    "transformer-postprocess": "dan",
    "transformer-postprocess-emb": "d",
    "transformer-postprocess-top": "",
    "transformer-preprocess": "",
    "transformer-tied-layers": [],
    "type": "transformer",
    "version": "v1.9.56 94aeaa46 2021-04-28 00:28:35 +0100",
}
PRE = {"transformer-preprocess": "n", "transformer-postprocess": "da", "transformer-postprocess-top": "n"}
SSRU = {"transformer-decoder-autoreg": "rnn", "dec-cell": "ssru", "transformer-ffn-activation": "relu"}
APART = {"tied-embeddings-all": False, "tied-embeddings": True}
KINDS: dict[str, dict[str, Any]] = {
    "opus": {},
    "separate": {**APART, "transformer-ffn-activation": "relu"},
    "untied": {
        **PRE,
        "tied-embeddings-all": False,
        "tied-embeddings-src": True,
        "transformer-ffn-activation": "gelu",
        "transformer-postprocess-emb": "nd",
        "output-omit-bias": True,
    },
    "student": SSRU,
    "apart": {**SSRU, **APART, **PRE},
}
LABELS = [">>deu<<", ">>fra<<"]
ENDS = {"eos_id": 0, "unk_id": 1, "bos_id": -1}


def write(kind: str, folder: Path, **settings: Any) -> Marian:
    """Write a folder of this kind; the model."""
    settings = {**SETTINGS, **KINDS[kind], **settings}
    student, apart = kind in ("student", "apart"), kind in ("separate", "apart")
    sizes = (_spm if student else _tables)(folder, apart)
    held = dict(_tensors(settings, sizes))
    text = yaml(settings).encode() + b"\0"
    if student:
        held, content = binary(held, text)
        (folder / "model.ende.intgemm.alphas.bin").write_bytes(content)
    else:
        (folder / "model.npz").write_bytes(npz({**held, "special:model.yml": np.frombuffer(text, np.int8)}))
    return Marian({name: array.astype(np.float64) for name, array in held.items()}, settings)


def yaml(settings: Mapping[str, Any]) -> str:
    """Settings as Marian writes them."""
    lines = []
    for name, value in settings.items():
        if isinstance(value, list) and value:
            lines += [f"{name}:", *(f"  - {item}" for item in value)]
        else:
            words = {"True": "true", "False": "false", "": '""'}
            lines.append(f"{name}: {words.get(str(value), value)}")
    return "\n".join(lines)


def _spm(folder: Path, apart: bool) -> tuple[int, int]:
    """As Firefox has them: their ids are the rows of the tables."""
    sizes = (120, 110 if apart else 120)
    for name, size in zip(("srcvocab", "trgvocab") if apart else ("vocab",), sizes, strict=False):
        (folder / f"{name}.ende.spm").write_bytes(piece_model("unigram", size, **ENDS))
    return sizes


def _tables(folder: Path, apart: bool) -> tuple[int, int]:
    """As OPUS-MT has them: ids in YAML, ``decoder.yml``; a file of the settings lies elsewhere."""
    models = [piece_model("unigram"), piece_model("unigram", 110, seed=4)]
    pieces = [pieces_of(model)[3:] for model in models]
    shared = [*LABELS, *dict.fromkeys(pieces[0] + pieces[1])]
    tables = {"opus.src.vocab.yml": pieces[0], "opus.trg.vocab.yml": pieces[1]} if apart else {"opus.vocab.yml": shared}
    for name, model in zip(("source.spm", "target.spm"), models, strict=True):
        (folder / name).write_bytes(model)
    for name, names in tables.items():
        lines = [
            f'"{piece}": {id}' if id % 2 else f"{piece}: {id}" for id, piece in enumerate(["</s>", "<unk>", *names])
        ]
        (folder / name).write_text("\n".join(lines), encoding="utf-8")
    names = [min(tables), max(tables)]
    said = {"models": ["/elsewhere/model.npz"], "vocabs": names, "beam-size": 6, "normalize": 1}
    (folder / "decoder.yml").write_text(yaml({**said, "relative-paths": True}))
    sizes = [len(names) + 2 for names in tables.values()]
    return sizes[0], sizes[-1]


def _tensors(settings: Mapping[str, Any], sizes: tuple[int, int]) -> Iterator[tuple[str, NDArray[np.float32]]]:
    """Random tensors under the names that Marian gives them."""
    draws, size, inner = np.random.default_rng(7), settings["dim-emb"], settings["transformer-dim-ffn"]
    pre = bool(settings["transformer-preprocess"])

    def drawn(*shape: int, mean: float = 0.0) -> NDArray[np.float32]:
        return (mean + 0.4 * draws.standard_normal(shape)).astype(np.float32)

    def norm(prefix: str, end: str) -> Iterator[tuple[str, NDArray[np.float32]]]:
        yield f"{prefix}_ln_scale{end}", drawn(1, size, mean=1.0)
        yield f"{prefix}_ln_bias{end}", drawn(1, size)

    for side, depth in (("encoder", "enc-depth"), ("decoder", "dec-depth")):
        for layer in range(1, settings[depth] + 1):
            prefix, end = f"{side}_l{layer}", "_pre" if pre else ""
            parts = ["self", "context"][: 1 + (side == "decoder")]
            if side == "decoder" and settings["transformer-decoder-autoreg"] == "rnn":
                parts.remove("self")
                yield from ((f"{prefix}_rnn_{name}", drawn(size, size)) for name in ("W", "Wf"))
                yield f"{prefix}_rnn_bf", drawn(1, size)
                yield from norm(f"{prefix}_rnn" if pre else f"{prefix}_rnn_ffn", end)
            for part in parts:
                for letter in "qkvo":
                    yield f"{prefix}_{part}_W{letter}", drawn(size, size)
                    yield f"{prefix}_{part}_b{letter}", drawn(1, size)
                yield from norm(f"{prefix}_{part}_Wo", end)
            for number, (read, written) in enumerate([(size, inner), (inner, size)], 1):
                yield f"{prefix}_ffn_W{number}", drawn(read, written)
                yield f"{prefix}_ffn_b{number}", drawn(1, written)
            yield from norm(f"{prefix}_ffn_ffn", end)
        if settings["transformer-postprocess-top"]:
            yield from norm(f"{side}_top", "")
        if "n" in settings["transformer-postprocess-emb"]:
            yield from norm(f"{side}_emb", "_pre")
    if settings["tied-embeddings-all"] or settings["tied-embeddings-src"]:
        yield "Wemb", drawn(sizes[0], size)
    else:
        yield from (
            (f"{side}_Wemb", drawn(rows, size)) for side, rows in zip(("encoder", "decoder"), sizes, strict=True)
        )
    if not (settings["tied-embeddings-all"] or settings["tied-embeddings"]):
        yield "decoder_ff_logit_out_W", drawn(size, sizes[1])
    if not settings["output-omit-bias"]:
        yield "decoder_ff_logit_out_b", drawn(1, sizes[1])


def npz(arrays: Mapping[str, NDArray[Any]]) -> bytes:
    """A ``.npz`` as NumPy writes it."""
    written = io.BytesIO()
    np.savez(written, **arrays)
    return written.getvalue()


def packed_npz(arrays: Mapping[str, NDArray[Any]]) -> bytes:
    """The same, compressed."""
    written = io.BytesIO()
    np.savez_compressed(written, **arrays)
    assert zipfile.is_zipfile(written)
    return written.getvalue()


def binary(arrays: Mapping[str, NDArray[np.float32]], settings: bytes) -> tuple[Arrays, bytes]:
    """A ``.bin`` of version 1 with matrices in int8; and what its numbers stand for."""
    meant, entries = dict(arrays), []
    for name, array in arrays.items():
        if "_W" in name[-3:] or "Wemb" in name:
            multiplier = np.float32(127 / np.abs(array).max())
            whole = np.rint(array * multiplier).astype(np.int8)
            meant[name] = whole.astype(np.float32) / multiplier
            held = (whole if "Wemb" in name else whole.T).tobytes() + multiplier.tobytes()
            entries.append((name, 0x4101, array.shape, held + bytes(-len(held) % 256)))
            entries.append((f"{name}_QuantMultA", 0x404, (1, 1), struct.pack("<f", 15.0) + bytes(252)))
        else:
            entries.append((name, 0x404, array.shape, array.tobytes()))
    entries.append(("special:model.yml", 0x101, (len(settings),), settings))
    return meant, entries_file(entries)


def entries_file(entries: list[tuple[str, int, tuple[int, ...], bytes]], version: int = 1) -> bytes:
    """The container of such entries."""
    head = struct.pack("<2Q", version, len(entries))
    for name, kind, shape, held in entries:
        head += struct.pack("<4Q", len(name) + 1, kind, len(shape), len(held))
    head += b"".join(name.encode() + b"\0" for name, *_ in entries)
    head += b"".join(struct.pack(f"<{len(shape)}i", *shape) for _, _, shape, _ in entries)
    padding = -(len(head) + 8) % 256
    return head + struct.pack("<Q", padding) + bytes(padding) + b"".join(held for *_, held in entries)


def shortlist(entries: list[list[int]], frequent: int) -> bytes:
    """A list of likely target pieces for each source piece, as Marian's tools write it."""
    ends = np.cumsum([0, *map(len, entries)]).tolist()
    head = struct.pack("<6Q", 0xF11A48D5013417F5, 0, frequent, 50, len(ends), ends[-1])
    return head + struct.pack(f"<{len(ends)}Q", *ends) + b"".join(np.array(one, "<u4").tobytes() for one in entries)
