"""Translations that are remembered, and those that a person corrects."""
