"""Readers: operators without input that return a stream of records.

One folder per file format. The modules here are shared by formats or need no folder.
"""
