"""Texts in compressed frames with an index: the format, and how it is written."""
