"""Import of PEFT's LoRA folders (``adapter_config.json``), merged into the folder in Hugging Face's layout beside them.

The tensors are merged by their names there, before any is renamed, so that every layout is read as without an adapter.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

import torch
from pydantic import TypeAdapter
from torch import Tensor

from regard.runs.convert.hub import FLAG, POSITIVE, TEXT, WHOLE, Fields, HubFolder, Whole, refuse_links_out, tensors_of
from regard.runs.convert.hub_import import ImportedModel, read_hub
from regard.runs.convert.layouts import FORMATS
from regard.system.errors import Option, RegardError, UsageError

ADAPTER, FILE, PICKLED = "adapter_config.json", "adapter_model.safetensors", "adapter_model.bin"
NONE: dict[str, object] = {
    "peft_type": "LORA",
    "use_dora": False,
    "use_qalora": False,
    "lora_bias": False,
    "alpha_pattern": {},
}
"""Fields that have one value here; what is refused otherwise would compute something else."""
ABSENT = (
    "alora_invocation_tokens layer_replication loftq_config target_parameters trainable_token_indices arrow_config "
    "use_bdlora kasa_config monteclora_config velora_config"
).split()
"""Fields that are empty."""
PLAIN = (True, False, None, "gaussian", "eva", "orthogonal")
"""Ways to draw the factors (``init_lora_weights``) that leave the base as it was."""
CLASSES = {"SEQ_CLS": "ForSequenceClassification", "TOKEN_CLS": "ForTokenClassification"}
"""What a head makes of a base, by ``task_type``."""
BEFORE, A, B = "base_model.model.", ".lora_A.weight", ".lora_B.weight"
"""What names of tensors begin with, and what those of factors end in."""
RANKS: TypeAdapter[dict[str, int]] = TypeAdapter(dict[str, Whole])


def read_peft(folder: Path, wanted: str | None = None, base: Path | None = None) -> ImportedModel:
    """The model that a LoRA of PEFT makes of its base.

    Args:
        folder: of the adapter; its ``base_model_name_or_path`` is looked for beside it, by its last part.
        wanted: the task it is to be for; default: what the folders say.
        base: the folder of the base, where it is elsewhere.

    Raises:
        UsageError: the base is not there.
        RegardError: the adapter is of another kind, or damaged; or as :func:`read_hub`.
    """
    config = Fields.of(folder / ADAPTER)
    config.only(**NONE)
    for name in ABSENT:
        if config.get(name):
            raise RegardError(f"{name} is not supported", config.where)
    if config.get("init_lora_weights") not in PLAIN:
        raise RegardError(f"init_lora_weights {config.get('init_lora_weights')!r:.60} changes the base", config.where)
    if base is None:
        name = config.parse("base_model_name_or_path", TEXT, "base").replace("\\", "/").rstrip("/").rpartition("/")[2]
        base = folder.absolute().parent / name
        if name in ("", ".", "..") or not base.is_dir():
            raise UsageError(f"its base {name!r:.60} is not beside it; say where it is", Option("base", "HF_DIR"))
    hub = HubFolder.open(base)
    refuse_links_out(base)
    whole = _BaseWithAdapter(hub.path, _with_head(hub, config), hub.generation, hub, folder, config)
    try:
        found = read_hub(whole, wanted)
    except RegardError as error:
        if error.where != hub.where:
            raise
        read_hub(hub)  # what is wrong with the base alone is said of it
        raise RegardError(error.message, str(_file(folder))) from None
    return replace(found, layout=f"a LoRA of PEFT merged into `{base.resolve().name}`", file=_file(folder).name)


def _with_head(hub: HubFolder, config: Fields) -> Fields:
    """The configuration of the base; of a classifier that the adapter makes of it, with its architecture."""
    ending = CLASSES.get(str(config.get("task_type")), "")
    named = [name for name in FORMATS[hub.kind].tasks if name.endswith(ending)] if hub.kind in FORMATS else []
    if not ending or not named or hub.architecture in named:
        return hub.config
    values = {name: value for name, value in hub.config.values.items() if name != "id2label"}
    return Fields({**values, "architectures": named[:1]}, hub.config.where)


@dataclass(frozen=True)
class _BaseWithAdapter(HubFolder):
    """A folder in Hugging Face's layout whose tensors are those that an adapter makes of it."""

    base: HubFolder
    adapter: Path
    settings: Fields

    @cached_property
    def tensors(self) -> dict[str, Tensor]:
        """Every tensor by its name in the base's file: changed, replaced, or as it is.

        Raises:
            RegardError: the adapter's are not those of a LoRA of this base.
        """
        found, own, format = dict(self.base.tensors), _read(_file(self.adapter)), FORMATS.get(self.kind)
        prefix, heads = (format.prefix, tuple(format.heads)) if format else ("", ())
        if self.architecture != self.base.architecture:  # the head of the base is no part of the new model
            found = {name: one for name, one in found.items() if not (heads and name.startswith(heads))}
        for name, tensor in own.items():
            if name.endswith(B):
                continue
            stem = name.removeprefix(BEFORE).removesuffix(A).replace(".base_layer", "")
            low = name.endswith(A)
            theirs = f"{stem}.weight" if low else stem
            # the base may have been saved without its head, or with another
            names = (theirs, theirs.removeprefix(prefix), prefix + theirs)
            theirs = next((one for one in names if one in found), theirs)
            if any(word in theirs for word in ("embed", "shared.", "wte.", "wpe.", "lora_", "token_adapter")):
                raise self._odd(name, "is no factor of a projection")
            if low:
                found[theirs] = self._sum(name, found.get(theirs), tensor, own.get(name.removesuffix(A) + B))
            elif theirs in found and found[theirs].shape != tensor.shape and not (heads and theirs.startswith(heads)):
                raise self._odd(name, "has another shape than the base's")
            else:
                found[theirs] = tensor
        if odd := [name for name in own if name.endswith(B) and name.removesuffix(B) + A not in own]:
            raise self._odd(odd[0], "has no lora_A beside it")
        return found

    def _sum(self, name: str, base: Tensor | None, factor_RD: Tensor, factor_FR: Tensor | None) -> Tensor:
        """``W + (α / r) B A``, or its transpose where the base stores its matrices so."""
        if base is None or factor_FR is None or not factor_RD.dim() == factor_FR.dim() == base.dim() == 2:
            raise self._odd(name, "has no lora_B beside it, or no matrix of the base")
        rank, module = len(factor_RD), "." + name.removesuffix(A)
        patterns, r = self.settings.parse("rank_pattern", RANKS, {}), self.settings.parse("r", WHOLE, 8)
        plain = {key for key in patterns if re.fullmatch(r"[\w.]+", key)}  # others are regular expressions
        named = next((key for key in patterns if key in plain and module.endswith(f".{key}")), None)
        if rank not in ([patterns[named]] if named else [r, *(patterns[key] for key in patterns.keys() - plain)]):
            told = f"rank_pattern {named} = {patterns[named]}" if named else f"r = {r}"
            raise self._odd(name, f"is of {rank} × {factor_RD.shape[1]} numbers, but {ADAPTER} says {told}")
        if factor_FR.shape[1] != rank:
            raise self._odd(name, "has another rank than its lora_B")
        alpha = self.settings.parse("lora_alpha", POSITIVE, 8)
        scale = alpha / (rank**0.5 if self.settings.parse("use_rslora", FLAG, False) else rank)
        change_FD = factor_FR.float() @ factor_RD.float() * scale
        if self.settings.parse("fan_in_fan_out", FLAG, False):
            change_FD = change_FD.t()
        if change_FD.shape != base.shape:
            raise self._odd(name, "does not fit the base's matrix")
        return base.float() + change_FD

    def _odd(self, name: str, what: str) -> RegardError:
        return RegardError(f"{name!r:.120} {what}: this is not supported", str(_file(self.adapter)))


def _file(folder: Path) -> Path:
    """The file of an adapter's tensors."""
    return folder / (PICKLED if not (folder / FILE).exists() and (folder / PICKLED).exists() else FILE)


def _read(path: Path) -> dict[str, Tensor]:
    """The tensors of an adapter's file."""
    found = tensors_of(path)
    if not found:
        raise RegardError("holds no tensors; its model would be the base", str(path))
    for name, one in found.items():
        if not one.is_floating_point() or not bool(torch.isfinite(one).all()):
            raise RegardError(f"{name!r:.120} holds what is no finite number", str(path))
    return found
