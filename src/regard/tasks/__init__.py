"""Tasks: translation, language models, classification, tagging, encoding, images; one package each."""
