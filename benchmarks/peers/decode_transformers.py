"""transformers, or onnxruntime by optimum, which has the same interface; a model that Regard exported.

A job that says ``onnx`` is for the latter. What opens the model first brings it into that form: the conductor tries
batches in a process of its own, so that this costs the measured one no memory.
"""

from __future__ import annotations

import shutil
from functools import partial
from pathlib import Path
from typing import Any

import torch
from transformers import AutoModel, AutoModelForCausalLM, AutoModelForSeq2SeqLM, AutoTokenizer
from worker import EXTRA, Answers, Job, Missing, longest_first, serve

THEIRS = {"translate": AutoModelForSeq2SeqLM, "encode": AutoModel, "generate": AutoModelForCausalLM}


def load(job: Job) -> dict[str, Any]:
    """The model on one thread."""
    torch.set_num_threads(1)
    if job.onnx:
        model = of_onnx(job)
    elif job.precision == "fp32":
        model = THEIRS[job.kind].from_pretrained(job.folders["huggingface"]).eval().to(job.device)
    else:
        raise Missing("transformers has no such type for processors")
    tokenizer = AutoTokenizer.from_pretrained(job.folders["huggingface"])
    return {do.__name__: torch.inference_mode()(partial(do, model, tokenizer)) for do in (translate, encode, generate)}


def of_onnx(job: Job) -> Any:
    """The model in onnxruntime, on one thread."""
    import onnxruntime
    from optimum.onnxruntime import ORTModelForCausalLM, ORTModelForFeatureExtraction, ORTModelForSeq2SeqLM

    kinds = {"translate": ORTModelForSeq2SeqLM, "encode": ORTModelForFeatureExtraction, "generate": ORTModelForCausalLM}
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    return kinds[job.kind].from_pretrained(exported(job, job.precision), session_options=options)


def exported(job: Job, precision: str) -> Path:
    """The model for onnxruntime, as fp32 or as int8: weights by channel, activations dynamic; written once."""
    from onnxruntime.quantization import QuantType, quantize_dynamic
    from optimum.exporters.onnx import main_export

    folder = Path(job.folders["onnx"], precision)
    if (folder / "config.json").exists():
        return folder
    if precision == "int8":
        plain = exported(job, "fp32")
        shutil.copytree(plain, folder, ignore=shutil.ignore_patterns("*.onnx*", "config.json"), dirs_exist_ok=True)
        for path in plain.glob("*.onnx"):
            quantize_dynamic(path, folder / path.name, per_channel=True, weight_type=QuantType.QInt8)
        shutil.copy(plain / "config.json", folder)  # last: the folder is whole
    else:
        tasks = {"translate": "text2text-generation-with-past", "encode": "feature-extraction"}
        task = tasks.get(job.kind, "text-generation-with-past")
        main_export(job.folders["huggingface"], folder, task=task, do_validation=False)
    return folder


def translate(model: Any, tokenizer: Any, texts: list[str], beam: int, batch: int) -> Answers:
    """In batches of sentences of similar length."""
    end, pad = tokenizer.eos_token_id, tokenizer.pad_token_id

    def search(some: list[list[int]]) -> Answers:
        given = tokenizer.pad({"input_ids": some}, return_tensors="pt").to(model.device)
        limit = max(map(len, some)) + EXTRA
        options = {"num_beams": beam, "max_new_tokens": limit, "length_penalty": 0.0, "do_sample": False}
        found = model.generate(**given, early_stopping=beam > 1, max_length=None, **options)[:, 1:].tolist()
        return [[id for id in ids if id not in (end, pad)] for ids in found]

    return decoded(tokenizer, longest_first(tokenizer(texts)["input_ids"], batch, search))


def encode(model: Any, tokenizer: Any, texts: list[str], batch: int) -> Answers:
    """The mean of a text's vectors."""

    def means(some: list[list[int]]) -> Answers:
        given = tokenizer.pad({"input_ids": some}, return_tensors="pt").to(model.device)
        found_BLD, mask_BL1 = model(**given).last_hidden_state, given["attention_mask"][:, :, None]
        return ((found_BLD * mask_BL1).sum(1) / mask_BL1.sum(1)).tolist()

    return longest_first(tokenizer(texts)["input_ids"], batch, means)


def generate(model: Any, tokenizer: Any, texts: list[str], tokens: int) -> Answers:
    """All texts side by side, their prompts to the right."""
    end = tokenizer.eos_token_id
    tokenizer.padding_side, tokenizer.pad_token = "left", tokenizer.pad_token or tokenizer.eos_token
    prompts = [[end, *(id for id in ids if id != end)] for ids in tokenizer(texts)["input_ids"]]
    given = tokenizer.pad({"input_ids": prompts}, return_tensors="pt").to(model.device)
    options = {"max_new_tokens": tokens, "min_new_tokens": tokens, "do_sample": False, "pad_token_id": end}
    found = model.generate(**given, max_length=None, **options)[:, given["input_ids"].shape[1] :].tolist()
    return decoded(tokenizer, found)


def decoded(tokenizer: Any, outputs: Answers) -> Answers:
    """The outputs, which are decoded as every tool does."""
    tokenizer.batch_decode(outputs)
    return outputs


if __name__ == "__main__":
    serve(load)
