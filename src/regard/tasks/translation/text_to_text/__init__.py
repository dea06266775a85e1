"""Text to text: several tasks in one encoder-decoder, each named by a prefix of what is read."""
