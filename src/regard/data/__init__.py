"""Corpora, shards of ids and packed batches; NumPy only."""
