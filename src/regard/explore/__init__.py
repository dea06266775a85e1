"""Attention exploration: records of one forward pass, pictures of it, and the answers behind the page."""
