"""Tokenizers: vocabularies by name, files of tokenizers, and the bytes of tokens."""
