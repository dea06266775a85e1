"""Demonstration corpus: a synchronous grammar that generates English–German pairs with gold annotation.

Agreement, gender, case, verb position, numbers, names, relative clauses, and pronouns with two possible antecedents.
Every English sentence has exactly one German translation here. All texts are our own (see docs/demo-corpus.md).
"""

from regard.runs.demo.grammar.corpus import (
    Corpus,
    Pair,
    classic,
    corpus,
    generate,
    word_spans,
    words_of,
    words_of_tokens,
)

__all__ = ["Corpus", "Pair", "classic", "corpus", "generate", "word_spans", "words_of", "words_of_tokens"]
