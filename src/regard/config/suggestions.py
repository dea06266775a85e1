"""Did-you-mean suggestions for unknown words, including names from other toolkits."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

LIKE = 0.7
"""Minimum similarity of two words."""
PART = 0.87
"""How much alike a word and its beginning are, or a word and one of those it is made of."""

_OURS: dict[str, str] = {
    "rate": "lr learning_rate",
    "tokens": "batch batch_size tokens_per_batch",
    "steps": "epoch epochs max_epochs num_epochs max_steps updates iterations",
    "minutes": "time hours",
    "vocabulary": "vocab vocab_size",
    "d_model": "hidden hidden_size dim embed_dim embedding_size n_embd width",
    "d_ff": "ff ffn ffn_dim dim_feedforward intermediate_size",
    "heads": "nhead n_heads num_heads n_head",
    "layers": "nlayers n_layers num_layers n_layer depth",
    "max_tokens": "length max_len max_length max_seq_len block_size context",
    "beam": "beam_size num_beams beams",
    "valid": "dev validation val",
    "validation": "dev valid val",
    "device": "gpu cuda",
    "threads": "workers num_workers jobs cpus",
    "recipe": "config conf cfg",
    "output": "out out_dir output_dir save save_dir model model_dir",
    "from": "init pretrained checkpoint finetune",
    "source": "src",
    "target": "tgt trg",
    "reference": "ref refs target tgt",
    "share": "rate mask_rate probability",
    "n": "num count samples",
    "top_k": "k topk",
    "top_p": "topp nucleus",
    "classify": "classification classifier label",
    "tag": "tagging tagger ner",
    "evaluate": "test score benchmark",
    "encode": "embed embedding vectors vectorise vectorize",
    "generate": "sample write complete",
    "train": "fit learn finetune fine_tune",
    "attend": "show visualise visualize heatmap",
    "help": "usage man",
    "tagging": "ner pos tag token_classification sequence_labelling",
    "language-model": "lm gpt gpt2 causal_lm language_modelling language_modeling",
    "masked-lm": "mlm bert masked_words",
    "span-corruption": "t5 spans denoising",
    "image-classification": "vit images image",
    "classification": "classifier sentiment intent intents",
    "translation": "mt nmt seq2seq",
}
"""Our words, each with what it is called elsewhere."""


def nearest(word: str, known: Iterable[str]) -> str:
    """``" Did you mean 'x'?"`` for the known word that was meant by ``word``, or an empty string."""
    found = did_you_mean(word, known)
    return f" Did you mean {found!r}?" if found else ""


def did_you_mean(word: str, known: Iterable[str]) -> str | None:
    """The known word that was meant by ``word``, if one looks like it or is called so elsewhere.

    Words of a section (``model.heads``) are searched for in that section first, else by their last part in all.

    Args:
        word: an option, a command, a key, a name ...
        known: all that there are.
    """
    every = {one: _plain(one) for one in known}
    section, _, last = _plain(word).rpartition(".")
    sections = dict.fromkeys(plain.rpartition(".")[0] for plain in every.values())
    near = _most_similar(section, {one: one for one in sections if one}, LIKE) if section else None
    within = {one: plain[len(near) + 1 :] for one, plain in every.items() if near and plain.startswith(f"{near}.")}
    parts = {one: plain.rpartition(".")[2] for one, plain in every.items()}
    return _most_similar(last, within, LIKE) or _most_similar(last, parts, PART if within else LIKE)


def _most_similar(word: str, known: dict[str, str], least: float) -> str | None:
    """The key of the value that is most like the word, or is called so elsewhere."""
    if word in known.values():
        return next(key for key, plain in known.items() if plain == word)
    for ours, elsewhere in _OURS.items():
        if word in elsewhere.split() and (found := [key for key, plain in known.items() if plain == _plain(ours)]):
            return found[0]
    best = max(known, key=lambda key: _similar(word, known[key]), default=None)
    return best if best is not None and _similar(word, known[best]) >= least else None


def _similar(word: str, known: str) -> float:
    if min(len(word), len(known)) > 1:
        if known.startswith(word) or word.startswith(f"{known}_"):
            return 1.01 * PART
        if word in known.split("_") or known in word.split("_"):
            return PART
    return max(_ratio(word, known), *(PART * _ratio(word, part) for part in known.split("_") if len(part) > 3), 0.0)


def _ratio(word: str, known: str) -> float:
    return difflib.SequenceMatcher(None, word, known).ratio()


def _plain(word: str) -> str:
    return word.lower().lstrip("-").replace("-", "_")
