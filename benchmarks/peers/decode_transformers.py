"""transformers, or onnxruntime by optimum, which has the same interface; a model that Regard exported.

The second argument, ``onnx``, is for the latter; with ``export`` as a third the model is brought into that form once,
in a process of its own, so that it costs the measured one no memory.
"""

from __future__ import annotations

import sys
from functools import partial
from pathlib import Path
from typing import Any

import torch
from decode_job import EXTRA, Answers, Job, Missing, Tool, longest_first, serve
from transformers import AutoModel, AutoModelForCausalLM, AutoModelForSeq2SeqLM, AutoTokenizer

THEIRS = {"translate": AutoModelForSeq2SeqLM, "encode": AutoModel, "generate": AutoModelForCausalLM}


def load(job: Job) -> Tool:
    """The model on one thread."""
    torch.set_num_threads(1)
    onnx = sys.argv[2:3] == ["onnx"]
    if onnx:
        model = of_onnx(job)
    elif job.precision == "fp32":
        model = THEIRS[job.kind].from_pretrained(job.folder("huggingface")).eval().to(job.device)
    else:
        raise Missing("transformers has no such type for processors")
    tokenizer = AutoTokenizer.from_pretrained(job.folder("huggingface"))
    return {do.__name__: inferring(partial(do, model, tokenizer)) for do in (translate, encode, generate)}


def inferring(do: Any) -> Any:
    """The function without gradients."""

    def called(**asked: Any) -> Any:
        with torch.inference_mode():
            return do(**asked)

    return called


def of_onnx(job: Job) -> Any:
    """The exported model in onnxruntime, on one thread."""
    import onnxruntime
    from optimum.onnxruntime import ORTModelForCausalLM, ORTModelForFeatureExtraction, ORTModelForSeq2SeqLM

    kinds = {"translate": ORTModelForSeq2SeqLM, "encode": ORTModelForFeatureExtraction, "generate": ORTModelForCausalLM}
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    folder = job.folder("onnx") / job.precision
    if not (folder / "config.json").exists():
        raise Missing("could not be exported")
    return kinds[job.kind].from_pretrained(folder, session_options=options)


def export(job: Job) -> None:
    """Writes the model for onnxruntime, as fp32 and as int8: weights by channel, activations dynamic."""
    import shutil

    from onnxruntime.quantization import QuantType, quantize_dynamic
    from optimum.exporters.onnx import main_export

    tasks = {"translate": "text2text-generation-with-past", "encode": "feature-extraction"}
    task = tasks.get(job.kind, "text-generation-with-past")
    plain, small = job.folder("onnx") / "fp32", job.folder("onnx") / "int8"
    main_export(str(job.folder("huggingface")), plain, task=task, do_validation=False)
    shutil.copytree(plain, small, ignore=shutil.ignore_patterns("*.onnx*"))
    for path in plain.glob("*.onnx"):
        quantize_dynamic(path, small / path.name, per_channel=True, weight_type=QuantType.QInt8)


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
    if sys.argv[3:4] == ["export"]:
        import json

        export(Job(**json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))))
    elif sys.argv[2:3] == ["onnx"]:
        serve(load, "onnxruntime", "optimum", "transformers", "torch")
    else:
        serve(load, "transformers", "torch")
