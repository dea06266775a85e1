"""A module for each kind of document: ``read`` finds its segments."""
