"""What ``export`` wrote and somebody changed: read where it says the same, else refused by name."""

import json
from pathlib import Path
from typing import Any

import pytest
from safetensors.torch import load_file, save_file

from regard.runs.conversion import import_model
from regard.system.errors import RegardError
from regard.text.tokenizers.hugging_face import HuggingFaceTokenizer
from tests.refusals import refused
from tests.runs.convert.small_exports import written
from tests.runs.convert.small_folders import rewrite, unigrams


@pytest.mark.one_of(5)
@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"decoder_start_token_id": 0}, "decoder_start_token_id 0"),
        ({"pad_token_id": 1}, "pad_token_id 1"),
        ({"decoder_vocab_size": 7}, "decoder_start_token_id 290"),
        ({"normalize_before": True}, "normalize_before = true"),
        ({"normalize_embedding": True}, "normalize_embedding = true"),
        ({"decoder_ffn_dim": 2}, "decoder_ffn_dim 2"),
        ({"tie_word_embeddings": False}, "lm_head.weight"),
        ({"vocab_size": 1}, "pad_token_id 290"),
        ({"encoder_layers": 3}, "config.json"),
        ({"encoder_ffn_dim": "wide"}, "encoder_ffn_dim is"),
    ],
)
def test_a_translator_of_another_make_is_refused_by_its_field(changes, message: str, tmp_path: Path) -> None:
    folder = written("marian", tmp_path)
    rewrite(folder, **changes)
    with refused(RegardError, None, message):
        import_model(folder, tmp_path / "again")


def test_positions_that_are_no_sinusoids_are_refused(tmp_path: Path) -> None:
    folder, tensor = written("pegasus", tmp_path), "model.decoder.embed_positions.weight"
    tensors = load_file(folder / "model.safetensors")
    tensors[tensor][0, 3] += 0.5
    save_file(tensors, folder / "model.safetensors")
    with refused(RegardError, "config.json", f"'{tensor}'"):
        import_model(folder, tmp_path / "again")


def test_a_translator_with_a_tokenizer_of_others_is_refused(tmp_path: Path) -> None:
    folder = written("marian", tmp_path)
    core = unigrams()
    core.save(str(folder / "tokenizer.json"))
    with refused(RegardError, "theirs"):
        import_model(folder, tmp_path / "again")


@pytest.mark.one_of(3)
@pytest.mark.parametrize("language", ["a b", 7, "x" * 41])
def test_a_language_that_is_none_is_named(language: Any, tmp_path: Path) -> None:
    folder = written("marian", tmp_path)
    path = folder / "tokenizer_config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"source_lang": language}))
    with refused(RegardError, "tokenizer_config.json", "source_lang"):
        import_model(folder, tmp_path / "again")


@pytest.mark.one_of(6)
@pytest.mark.parametrize(("beam", "found"), [("many", None), (0, None), (None, 5), (7, 7), (1000, 100)])
def test_the_beam_is_that_of_their_generation(beam: Any, found: int | None, tmp_path: Path) -> None:
    folder = written("marian", tmp_path)
    (folder / "generation_config.json").write_text(json.dumps({"num_beams": beam}))
    if found is None:
        with refused(RegardError, "generation_config.json", "num_beams"):
            import_model(folder, tmp_path / "again")
    else:
        assert import_model(folder, tmp_path / "again").recipe.decoding.beam == found


@pytest.mark.one_of(2)
@pytest.mark.parametrize("name", ["added_tokens", "post_processor", "pre_tokenizer", "normalizer"])
def test_a_file_of_ours_that_was_changed_is_one_of_others(name: str, tmp_path: Path) -> None:
    folder = written("words", tmp_path)
    document = json.loads((folder / "tokenizer.json").read_text())
    changed = {
        "added_tokens": [{**document["added_tokens"][3], "lstrip": True}],
        "post_processor": {"type": "ByteLevel", "add_prefix_space": True, "trim_offsets": True, "use_regex": True},
        "pre_tokenizer": {"type": "Whitespace"},
        "normalizer": {"type": "Lowercase"},
    }
    (folder / "tokenizer.json").write_text(json.dumps({**document, name: changed[name]}))
    assert isinstance(import_model(folder, tmp_path / "again").assets.tokenizer, HuggingFaceTokenizer)


def test_a_cut_model_of_ctranslate2_is_named(tmp_path: Path) -> None:
    (tmp_path / "fast").mkdir()
    (tmp_path / "fast" / "config.json").write_text('{"add_source_bos": false, "eos_token": "</s>"}')
    (tmp_path / "fast" / "model.bin").write_bytes(b"\x06\x00")
    with refused(RegardError, "fast/model.bin"):
        import_model(tmp_path / "fast", tmp_path / "again")
