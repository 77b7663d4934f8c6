"""Data sets of Hugging Face as records."""
