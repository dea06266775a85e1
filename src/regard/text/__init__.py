"""Strings and ids: the tokeniser, normalisation, sentences."""
