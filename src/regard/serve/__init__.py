"""The attention page served to the browser of this machine, and to nobody else."""
