"""The public Python interface: a class for each task, and what the attention page answers as labelled arrays."""
