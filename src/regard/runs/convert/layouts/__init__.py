"""One module of tables for each kind of model; what a recipe has that no format expresses."""
