"""Text to text: what a person wants, one file each."""
