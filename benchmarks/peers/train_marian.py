"""Hugging Face Transformers: MarianMTModel under Seq2SeqTrainer, batches by sentences, random or grouped by length."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence
from transformers import MarianConfig, MarianMTModel, Seq2SeqTrainer, Seq2SeqTrainingArguments
from worker import Job, Meter, serve, trainer

IGNORED = -100


def model(job: Job) -> MarianMTModel:
    """A Marian model of the job's size; ``</s>`` is 0 as in our vocabulary, start and padding follow the pieces."""
    start, padding = job.pieces, job.pieces + 1
    values: dict[str, Any] = {"vocab_size": job.pieces + 2, "decoder_vocab_size": job.pieces + 2}
    values |= {"pad_token_id": padding, "bos_token_id": start, "decoder_start_token_id": start}
    values |= {"d_model": job.d_model, "dropout": job.dropout, "activation_dropout": job.dropout}
    values |= {"attention_dropout": 0.0, "activation_function": "relu", "scale_embedding": True}
    for side in ("encoder", "decoder"):
        values |= {f"{side}_layers": job.layers, f"{side}_ffn_dim": job.d_ff, f"{side}_attention_heads": job.heads}
    return MarianMTModel(MarianConfig(**values, max_position_embeddings=512, eos_token_id=0, forced_eos_token_id=0))


class Collator:
    """Pads a batch and shifts the labels right, as the model expects them."""

    def __init__(self, start: int, padding: int) -> None:
        self.start, self.padding = start, padding

    def __call__(self, examples: list[dict[str, Any]]) -> dict[str, Any]:
        """The batch's tensors by the names of the model's arguments, and how many labels count."""
        source = pad_sequence([torch.tensor(e["input_ids"]) for e in examples], True, self.padding)
        labels = pad_sequence([torch.tensor(e["labels"]) for e in examples], True, IGNORED)
        target = torch.full_like(labels, self.start)
        target[:, 1:] = labels[:, :-1].masked_fill(labels[:, :-1] == IGNORED, self.padding)
        mask = source.ne(self.padding).long()
        useful = int(labels.ne(IGNORED).sum())
        tensors = {"input_ids": source, "attention_mask": mask, "labels": labels, "decoder_input_ids": target}
        return {**tensors, "useful": useful}


def train(job: Job, meter: Meter) -> None:
    """Trains for more steps than are measured."""
    examples = [{"input_ids": [*s, 0], "labels": [*t, 0], "length": len(s) + 1} for s, t in job.pairs()]
    arguments = Seq2SeqTrainingArguments(
        f"{job.folder}/run",
        seed=job.seed,
        per_device_train_batch_size=job.sentences,
        max_steps=100_000,
        label_smoothing_factor=job.label_smoothing,
        learning_rate=1e-4,
        logging_steps=50,
        save_strategy="no",
        report_to=[],
        use_cpu=job.device == "cpu",
        bf16=job.precision == "bf16",
        remove_unused_columns=False,
        disable_tqdm=True,
        train_sampling_strategy="group_by_length" if job.group else "random",
    )

    class Trainer(Seq2SeqTrainer):
        """The same trainer; it only tells the meter what it is about to compute."""

        def compute_loss(self, model: Any, inputs: dict[str, Tensor], *rest: Any, **named: Any) -> Any:
            """The loss of a batch, after counting its labels."""
            meter.count(int(inputs.pop("useful")), inputs["labels"].numel())
            return super().compute_loss(model, inputs, *rest, **named)

    collator = Collator(job.pieces, job.pieces + 1)
    Trainer(model(job), arguments, train_dataset=examples, data_collator=collator).train()


if __name__ == "__main__":
    serve(trainer(train))
