"""Model architectures, assembled from the parts in ``nn``: one module for each."""
