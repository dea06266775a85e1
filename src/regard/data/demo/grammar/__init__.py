"""Demonstration corpus: a synchronous grammar that generates English–German pairs with gold annotation.

Agreement, gender, case, verb position, numbers, names, relative clauses, and pronouns with two possible antecedents.
Every English sentence has exactly one German translation here. All texts are our own (see docs/demo-corpus.md).
"""

from regard.data.demo.grammar.corpus import Corpus, corpus
from regard.data.demo.grammar.counting import count_sentences
from regard.data.demo.grammar.generate import PATTERNS, classic, generate
from regard.data.demo.grammar.lexicon.entries import lemmas
from regard.data.demo.grammar.pair import Pair, Pronoun, word_spans, words_of, words_of_tokens
from regard.data.demo.grammar.splits import Split, split_of

__all__ = [
    "PATTERNS",
    "Corpus",
    "Pair",
    "Pronoun",
    "Split",
    "classic",
    "corpus",
    "count_sentences",
    "generate",
    "lemmas",
    "split_of",
    "word_spans",
    "words_of",
    "words_of_tokens",
]
