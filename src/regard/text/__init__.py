"""Tokenizers with character offsets, normalisation, languages, sentences and text files. No torch."""
