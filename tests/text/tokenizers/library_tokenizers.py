"""Small tokenizers of the library, learned as those of BERT, GPT-2, RoBERTa and T5 are."""

from collections.abc import Sequence

from tokenizers import AddedToken, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers


def word_pieces(texts: Sequence[str], size: int) -> Tokenizer:
    """As BERT's."""
    core = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    core.normalizer = normalizers.BertNormalizer(lowercase=True)
    core.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    core.decoder = decoders.WordPiece()
    symbols = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    core.train_from_iterator(
        texts, trainers.WordPieceTrainer(vocab_size=size, special_tokens=symbols, show_progress=False)
    )
    core.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", pair="[CLS] $A [SEP] $B:1 [SEP]:1", special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
    )
    return core


def byte_pairs(texts: Sequence[str], size: int) -> Tokenizer:
    """As GPT-2's."""
    core = Tokenizer(models.BPE())
    core.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    core.decoder = decoders.ByteLevel()
    alphabet, symbols = pre_tokenizers.ByteLevel.alphabet(), ["<|endoftext|>"]
    trainer = trainers.BpeTrainer(
        vocab_size=size, special_tokens=symbols, initial_alphabet=alphabet, show_progress=False
    )
    core.train_from_iterator(texts, trainer)
    return core


def roberta(texts: Sequence[str], size: int) -> Tokenizer:
    """As RoBERTa's."""
    core = Tokenizer(models.BPE())
    core.pre_tokenizer, core.decoder = pre_tokenizers.ByteLevel(add_prefix_space=False), decoders.ByteLevel()
    symbols = ["<s>", "<pad>", "</s>", "<unk>", AddedToken("<mask>", lstrip=True, special=True)]
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(
        vocab_size=size, special_tokens=symbols, initial_alphabet=alphabet, show_progress=False
    )
    core.train_from_iterator(texts, trainer)
    core.post_processor = processors.RobertaProcessing(("</s>", 2), ("<s>", 0), True, False)
    return core


def unigrams(texts: Sequence[str], size: int, *further: str) -> Tokenizer:
    """As T5's; ``further`` symbols are pieces too."""
    core = Tokenizer(models.Unigram())
    core.pre_tokenizer = pre_tokenizers.Metaspace()
    core.decoder = decoders.Metaspace()
    symbols = ["<pad>", "</s>", "<unk>", *further]
    trainer = trainers.UnigramTrainer(vocab_size=size, special_tokens=symbols, unk_token="<unk>", show_progress=False)
    core.train_from_iterator(texts, trainer)
    core.post_processor = processors.TemplateProcessing("$A </s>", "$A </s> $B </s>", [("</s>", 1)])
    return core
