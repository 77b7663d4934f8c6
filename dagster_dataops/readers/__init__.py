"""Readers of records: operators without input that return a stream. One folder a file format."""
