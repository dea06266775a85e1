"""RoBERTa, XLM-R and DistilBERT as they lie on the hub: the same ids and scores as their library, in and out."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file
from tokenizers import Tokenizer

import regard
from regard.runs.conversion import export_model, import_model
from regard.runs.convert.hub_import import read_hub_model
from regard.system.errors import RegardError
from tests.models.small_models import assert_near
from tests.refusals import refused
from tests.runs.convert import translator_folders
from tests.runs.convert.small_folders import LABELS, PAIRS, TAGS, TEXTS, around, rewrite, word_pieces
from tests.runs.convert.small_peers import AUTO, OFFSET, theirs, transformers
from tests.text.tokenizers import library_tokenizers as library

HIDDEN = {"hidden_size": 12, "num_hidden_layers": 2, "num_attention_heads": 3, "intermediate_size": 20}
SMALL = {"dim": 12, "n_layers": 2, "n_heads": 3, "hidden_dim": 20}
KINDS = ["Roberta", "XLMRoberta", "DistilBert"]
ODD = ["", " ", "  a  b ", "ﬁne ½ Ⅳ", "नमस्ते 你好 안녕", "don't I'LL we've", "1,234.5e-6 № ①", "a</s>b <mask>"]


def unigrams(folder: Path) -> Any:
    """XLM-R's SentencePiece model in a folder, and the tokenizer that their library makes of it."""
    (folder / "sentencepiece.bpe.model").write_bytes(translator_folders.piece_model("unigram", 110))
    return transformers.XLMRobertaTokenizer.from_pretrained(folder)


def fast(core: Tokenizer, roles: dict[str, str]) -> Any:
    named = {f"{role}_token": name for role, name in roles.items()}
    return transformers.PreTrainedTokenizerFast(tokenizer_object=core, **named)


def folder_of(kind: str, head: str, path: Path, **changes: Any) -> tuple[Any, Any]:
    """A folder of such a model; the model and the tokenizer that it was written from."""
    path.mkdir()
    if kind == "DistilBert":
        tokenizer = fast(
            word_pieces(), {"pad": "[PAD]", "unk": "[UNK]", "cls": "[CLS]", "sep": "[SEP]", "mask": "[MASK]"}
        )
    elif kind == "Roberta":
        roles = {"bos": "<s>", "eos": "</s>", "cls": "<s>", "sep": "</s>"}
        tokenizer = fast(library.roberta(TEXTS, 290), {**roles, "pad": "<pad>", "unk": "<unk>", "mask": "<mask>"})
    else:
        tokenizer = unigrams(path)
    labels = TAGS if head == "ForTokenClassification" else LABELS
    named = {"num_labels": len(labels), "id2label": dict(enumerate(labels)), "vocab_size": len(tokenizer)}
    sizes = SMALL if kind == "DistilBert" else {**HIDDEN, **OFFSET}
    config = getattr(transformers, f"{kind}Config")(**sizes, **named, max_position_embeddings=150, **changes)
    peer = theirs(kind + head, config).float()
    peer.save_pretrained(path)
    if kind != "XLMRoberta":
        tokenizer.save_pretrained(path)
    return peer, tokenizer


def scores_of(task: Any) -> Any:
    """What a task computes for the texts: a row for a text, or for each token of the texts."""
    if task.name == "encoding":
        return task.encode(TEXTS)
    return task.scores(PAIRS if task.name == "sentence-pairs" else TEXTS)


def ids_of(tokenizer: Any, text: str) -> list[int]:
    return [*tokenizer.begin, *tokenizer.encode(text).ids, tokenizer.end]


@pytest.mark.one_of(3)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("purpose", [None, "mrpc"], ids=["text", "pair"])
def test_classes(kind: str, purpose: str | None, tmp_path: Path) -> None:
    """Torch's model and the engine; what came in goes out to the bit, and their library computes the same of it."""
    peer, tokenizer = folder_of(kind, "ForSequenceClassification", tmp_path / "theirs")
    rewrite(tmp_path / "theirs", finetuning_task=purpose)
    task = import_model(tmp_path / "theirs", tmp_path / "ours")
    assert task.name == ("sentence-pairs" if purpose else "classification")
    given = [list(pair) for pair in PAIRS] if purpose else TEXTS
    expected = peer(**tokenizer(given, padding=True, return_tensors="pt", return_token_type_ids=False)).logits
    for ours in (task, regard.load(tmp_path / "ours", "cpu")):
        assert_near(torch.from_numpy(scores_of(ours)), expected, 1e-5)
    export_model(tmp_path / "ours", tmp_path / "out")
    before, after = (load_file(tmp_path / name / "model.safetensors") for name in ("theirs", "out"))
    assert before.keys() == after.keys()
    assert all(torch.equal(after[name], tensor) for name, tensor in before.items())
    again = transformers.AutoModelForSequenceClassification.from_pretrained(tmp_path / "out").eval()
    read = transformers.AutoTokenizer.from_pretrained(tmp_path / "out")
    batch = read(given, padding=True, return_tensors="pt")
    assert_near(again(**batch).logits, expected, 1e-5)
    back = import_model(tmp_path / "out", tmp_path / "back")
    assert np.array_equal(scores_of(back), scores_of(task))
    assert back.recipe == task.recipe


@pytest.mark.one_of(3)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("head", ["ForMaskedLM", "ForTokenClassification", "Model"])
def test_words_tags_and_vectors_go_in_and_out(kind: str, head: str, tmp_path: Path) -> None:
    peer, tokenizer = folder_of(kind, head, tmp_path / "theirs")
    task = import_model(tmp_path / "theirs", tmp_path / "ours")
    for text in TEXTS + ODD[:-1]:
        assert ids_of(task.assets.tokenizer, text) == tokenizer(text)["input_ids"], text
    fast = regard.load(tmp_path / "ours", "cpu")
    assert fast.engine is not None
    if head == "ForMaskedLM":
        mask = task.assets.tokenizer.names[task.mask]
        batch = tokenizer(f"A dog {mask} over the grass.", return_tensors="pt", return_token_type_ids=False)
        expected = peer(**batch).logits[0, batch.input_ids[0] == task.mask].softmax(-1)
        named = {task.assets.tokenizer.piece(id): one for id, one in enumerate(expected[0].tolist())}
        for (found,) in (task.fill(gap := "A dog [MASK] over the grass.", 5), fast.fill(gap, 5)):
            assert [one.probability for one in found] == pytest.approx([named[one.piece] for one in found], rel=1e-4)
    elif head == "Model":
        hidden = [peer(**tokenizer(text, return_tensors="pt", return_token_type_ids=False)) for text in TEXTS]
        expected = torch.stack([one.last_hidden_state[0].mean(0) for one in hidden])
        for found in (task.encode(TEXTS), fast.encode(TEXTS)):
            assert_near(torch.from_numpy(found), expected, 1e-5)
    else:
        assert [one.tags for one in fast.tag(TEXTS)] == [one.tags for one in task.tag(TEXTS)]
    export_model(tmp_path / "ours", tmp_path / "out")
    before, after = (load_file(tmp_path / name / "model.safetensors") for name in ("theirs", "out"))
    assert before.keys() == after.keys()
    assert all(torch.equal(after[name], tensor) for name, tensor in before.items())
    again = getattr(transformers, AUTO[task.name]).from_pretrained(tmp_path / "out").eval()
    ids = torch.tensor([ids_of(task.assets.tokenizer, TEXTS[0])])
    assert_near(again(ids)[0], peer(ids)[0], 1e-6)
    read = transformers.AutoTokenizer.from_pretrained(tmp_path / "out")
    assert [read(text)["input_ids"] for text in TEXTS] == [tokenizer(text)["input_ids"] for text in TEXTS]


@pytest.mark.parametrize("kind", KINDS)
def test_sentence_encoders(kind: str, tmp_path: Path) -> None:
    folder_of(kind, "Model", tmp_path / "theirs")
    around(tmp_path / "theirs", "cls_token", ("Transformer", "Pooling", "Normalize"), max_seq_length=16)
    task = import_model(tmp_path / "theirs", tmp_path / "ours")
    assert (task.recipe.model.pool, task.recipe.model.pooler, task.recipe.data.max_tokens) == ("first", False, 16)
    assert np.allclose(np.linalg.norm(task.encode(TEXTS), axis=1), 1.0)


def test_files_of_the_first_releases_give_the_same_pieces(tmp_path: Path) -> None:
    _, tokenizer = folder_of("Roberta", "ForMaskedLM", tmp_path / "theirs")
    tokenizer.backend_tokenizer.model.save(str(tmp_path / "theirs"))
    (tmp_path / "theirs" / "tokenizer.json").unlink()
    found = read_hub_model(tmp_path / "theirs").tokenizer
    for text in TEXTS + ODD[:-1]:
        assert ids_of(found, text) == tokenizer(text)["input_ids"]
    assert found.ends_between == 2
    assert found.mask not in found.encode(ODD[-1]).ids


def test_what_cannot_be_told_is_refused(tmp_path: Path) -> None:
    folder_of("Roberta", "ForMaskedLM", tmp_path / "one", hidden_act="relu")
    with refused(RegardError, "config.json", "hidden_act"):
        read_hub_model(tmp_path / "one")
    folder_of("XLMRoberta", "ForMaskedLM", tmp_path / "two")
    rewrite(tmp_path / "two", model_type="camembert", architectures=["CamembertForMaskedLM"])
    with refused(RegardError, tmp_path / "two", "tokenizer.json"):  # other ids than XLM-R's
        read_hub_model(tmp_path / "two")
    config = json.loads((tmp_path / "one" / "config.json").read_text())
    rewrite(tmp_path / "one", hidden_act="gelu", pad_token_id=config["pad_token_id"] + 160)
    with refused(RegardError, "config.json", "pad_token_id 161"):
        read_hub_model(tmp_path / "one")
