"""Hand-written forward and backward passes, apart from the parts that use them: each equals torch's own in tests."""
