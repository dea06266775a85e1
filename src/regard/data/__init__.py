"""Corpora, prepared shards of token ids, and packed batches; NumPy only."""
