"""One pass recorded and shown: attention as pictures."""
