"""Classification of sentence pairs: paraphrase, entailment, similarity."""
