"""Strings and ids: byte-level BPE with character offsets, normalisation, languages, sentences. No torch."""
