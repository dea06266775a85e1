"""Training of any task: the bases of training tasks and jobs, defaults by size, and the model folder they write."""
