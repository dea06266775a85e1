"""Models of texts without a second side: encoders and recurrences, what stands on them, and how they are built."""
