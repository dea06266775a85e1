"""The commands; torch is imported only inside them."""
