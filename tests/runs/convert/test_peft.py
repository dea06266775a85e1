"""LoRA folders of PEFT, imported with their base: the model says what theirs says with the product beside."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file
from torch import Tensor

from regard.runs.conversion import export_model, import_model
from regard.system.errors import RegardError, UsageError
from tests.refusals import refused
from tests.runs.convert import translator_folders
from tests.runs.convert.small_folders import folder_of
from tests.runs.convert.small_peers import transformers

IDS = torch.tensor([[5, 6, 7, 9, 2], [8, 5, 11, 6, 2]])
CONFIG: dict[str, Any] = {"peft_type": "LORA", "r": 2, "lora_alpha": 6, "base_model_name_or_path": "hub/base"}


def marian(folder: Path) -> Any:
    return translator_folders.write("marian", folder)


def bert(folder: Path) -> Any:
    return folder_of("BertForSequenceClassification", folder)[0].eval()


def gpt(folder: Path) -> Any:
    return folder_of("GPT2LMHeadModel", folder)[0].eval()


# what makes the folder, its projections, fields of its adapter, and whether it stores matrices the other way round
KINDS: dict[str, tuple[Callable[[Path], Any], str, dict[str, Any]]] = {
    "marian": (marian, "q_proj v_proj fc1", {"use_rslora": True}),
    "bert": (bert, "query value", {"task_type": "SEQ_CLS"}),
    "gpt": (gpt, "c_attn", {"fan_in_fan_out": True}),
}


def product(rank: int, linear: Any, generator: torch.Generator, turned: bool) -> tuple[Tensor, Tensor]:
    """Random factors of a projection: r × inputs, and outputs × r."""
    first, second = linear.weight.shape
    inputs, outputs = (first, second) if turned else (second, first)
    shapes = ((rank, inputs), (outputs, rank))
    return tuple(0.3 * torch.randn(shape, generator=generator) for shape in shapes)  # type: ignore[return-value]


def beside(scale: float, lora_A: Tensor, lora_B: Tensor) -> Callable[[Any, Any, Tensor], Tensor]:
    """A hook that adds to what a projection gives."""
    return lambda part, given, y: y + scale * (given[0] @ lora_A.t() @ lora_B.t())


def adapted(peer: Any, folder: Path, names: str, config: dict[str, Any]) -> Any:
    """Write a LoRA of a model as PEFT does, and let the model compute it: in hooks, beside its own products."""
    generator, found = torch.Generator().manual_seed(7), dict[str, Tensor]()
    scale = config["lora_alpha"] / (config["r"] ** 0.5 if config.get("use_rslora") else config["r"])
    for name, part in peer.named_modules():
        if name.rpartition(".")[2] in names.split():
            lora_A, lora_B = product(config["r"], part, generator, bool(config.get("fan_in_fan_out")))
            found |= {f"base_model.model.{name}.lora_{one}.weight": x for one, x in (("A", lora_A), ("B", lora_B))}
            part.register_forward_hook(beside(scale, lora_A.to(peer.dtype), lora_B.to(peer.dtype)))
    if config.get("task_type") == "SEQ_CLS":  # its head is saved whole
        with torch.no_grad():
            for name, one in peer.classifier.named_parameters():
                one.add_(torch.randn(one.shape, generator=generator))
                found[f"base_model.model.classifier.{name}"] = one.detach().clone()
    folder.mkdir()
    save_file({name: one.float().contiguous() for name, one in found.items()}, folder / "adapter_model.safetensors")
    (folder / "adapter_config.json").write_text(json.dumps(config))
    return peer


def logits(peer: Any) -> Tensor:
    more = {"decoder_input_ids": IDS[:, :3]} if peer.config.is_encoder_decoder else {}
    with torch.no_grad():
        found: Tensor = peer(input_ids=IDS, **more).logits
    return found


@pytest.mark.one_of(2)
@pytest.mark.parametrize("kind", KINDS)
def test_the_logits_are_those_of_the_base_with_the_product_beside(tmp_path: Path, kind: str) -> None:
    make, names, more = KINDS[kind]
    (tmp_path / "base").mkdir()
    plain = logits(make(tmp_path / "base"))
    peer = adapted(make(tmp_path / "base"), tmp_path / "adapter", names, {**CONFIG, **more})
    expected = logits(peer)
    assert not torch.allclose(plain, expected, atol=1e-2)
    import_model(tmp_path / "adapter", tmp_path / "ours")
    assert "merged into `base`" in (tmp_path / "ours" / "card.md").read_text()
    export_model(tmp_path / "ours", tmp_path / "out")
    found = logits(type(peer).from_pretrained(tmp_path / "out").eval())
    size = min(found.shape[-1], expected.shape[-1]) - (kind == "marian")  # but for <pad>, which is never written
    torch.testing.assert_close(found[..., :size], expected[..., :size].float(), atol=1e-5, rtol=1e-5)


def test_a_head_of_labels_comes_with_the_adapter_of_an_encoder(tmp_path: Path) -> None:
    folder_of("BertModel", tmp_path / "base")
    peer, _ = folder_of("BertForSequenceClassification", tmp_path / "like")
    peer.bert = transformers.BertModel.from_pretrained(tmp_path / "base").to(peer.dtype)
    adapted(peer.eval(), tmp_path / "adapter", "query value", {**CONFIG, "task_type": "SEQ_CLS"})
    import_model(tmp_path / "adapter", tmp_path / "ours")
    export_model(tmp_path / "ours", tmp_path / "out")
    found = logits(type(peer).from_pretrained(tmp_path / "out").eval())
    torch.testing.assert_close(found, logits(peer).float(), atol=1e-5, rtol=1e-5)


def test_what_is_no_lora_of_this_base_is_refused_by_name(tmp_path: Path) -> None:
    adapted(bert(tmp_path / "base"), tmp_path / "adapter", "query", {**CONFIG})
    path, file = tmp_path / "adapter" / "adapter_config.json", tmp_path / "adapter" / "adapter_model.safetensors"
    for more in (
        {"peft_type": "LOHA"},
        {"use_dora": True},
        {"alpha_pattern": {"query": 3}},
        {"trainable_token_indices": [1]},
        {"init_lora_weights": "pissa"},
        {"layer_replication": [[0, 1]]},
    ):
        path.write_text(json.dumps({**CONFIG, **more}))
        with refused(RegardError, path, *more):
            import_model(tmp_path / "adapter", tmp_path / "ours")
    path.write_text(json.dumps({**CONFIG, "base_model_name_or_path": "../../else"}))
    with refused(UsageError, "base HF_DIR", "'else'"):
        import_model(tmp_path / "adapter", tmp_path / "ours")
    import_model(tmp_path / "adapter", tmp_path / "ours", base=tmp_path / "base")
    with refused(UsageError, f"base {tmp_path}", "adapters of PEFT"):
        import_model(tmp_path / "base", tmp_path / "other", base=tmp_path)
    name = "base_model.model.bert.encoder.layer.0.attention.self.query"
    good = {f"{name}.lora_A.weight": torch.zeros(2, 12), f"{name}.lora_B.weight": torch.zeros(12, 2)}
    for bad in (
        {f"{name}.lora_A.weight": torch.zeros(2, 11)},
        {f"{name}.lora_A.weight": torch.tensor(0.0)},
        {f"{name}.lora_A.weight": torch.zeros(0, 12), f"{name}.lora_B.weight": torch.zeros(12, 0)},
        {f"{name}.lora_B.weight": torch.zeros(12, 3)},
        {f"{name}.lora_B.weight": torch.full((12, 2), torch.inf)},
        {f"{name}.lora_magnitude_vector": torch.zeros(12)},
        {"base_model.model.bert.embeddings.word_embeddings.weight": torch.zeros(3, 12)},
        {"base_model.model.bert.no.lora_A.weight": torch.zeros(2, 12)},
        {"base_model.model.bert.no.lora_B.weight": torch.zeros(2, 12)},
        {f"{name}.bias": torch.zeros(3)},
    ):
        save_file({**good, **bad}, file)
        with refused(RegardError, file, next(iter(bad)).partition("lora_")[0]):
            import_model(tmp_path / "adapter", tmp_path / "none", base=tmp_path / "base")
    for bad in (
        {"base_model.model.bert.extra.weight": torch.zeros(3)},
        {key: torch.full_like(one, 3e38) for key, one in good.items()},
    ):
        save_file({**good, **bad}, file)
        with refused(RegardError, file, "extra" if len(bad) == 1 else "query"):
            import_model(tmp_path / "adapter", tmp_path / "none", base=tmp_path / "base")
    save_file({key: torch.zeros(3, 12) if "lora_A" in key else torch.zeros(12, 3) for key in good}, file)
    with refused(RegardError, file, f"{name}.lora_A.weight", "3 × 12", "r = 2"):
        import_model(tmp_path / "adapter", tmp_path / "none", base=tmp_path / "base")
    for pattern, told in (({"query": 2}, "rank_pattern query = 2"), ({"key": 3}, "r = 2")):
        path.write_text(json.dumps({**CONFIG, "rank_pattern": pattern}))
        with refused(RegardError, file, "3 × 12", told):
            import_model(tmp_path / "adapter", tmp_path / "none", base=tmp_path / "base")
    for key in ("query", "que.*"):
        path.write_text(json.dumps({**CONFIG, "rank_pattern": {key: 3}}))
        import_model(tmp_path / "adapter", tmp_path / key, base=tmp_path / "base")
    path.write_text(json.dumps(CONFIG))
    save_file({}, file)
    with refused(RegardError, file, "no tensors"):
        import_model(tmp_path / "adapter", tmp_path / "none", base=tmp_path / "base")
    file.write_bytes(b"\xff" * 100)
    with refused(RegardError, file, "broken"):
        import_model(tmp_path / "adapter", tmp_path / "none", base=tmp_path / "base")
    save_file(good, file)
    whole = tmp_path / "base" / "model.safetensors"
    save_file({key: one for key, one in load_file(whole).items() if "layer.1.output.dense" not in key}, whole)
    with refused(RegardError, whole, "layer.1.output.dense"):
        import_model(tmp_path / "adapter", tmp_path / "none", base=tmp_path / "base")
    assert not (tmp_path / "none").exists()
