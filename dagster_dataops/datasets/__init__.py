"""JSON Lines files: dataset handles, reading by byte range, sampling and atomic writing.

Everything that depends on the layout of a jsonl file belongs here.
"""
