"""HTTP server of the attention page, reachable from this machine only."""
