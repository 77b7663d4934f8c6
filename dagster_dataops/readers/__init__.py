"""Readers: operators without input that return a stream of records. One folder per file format."""
