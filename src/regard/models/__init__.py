"""Assemblies of parts: one page for each architecture."""
