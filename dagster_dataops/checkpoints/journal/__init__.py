"""The files of an unfinished run: journal frames, spans, segments, and how they are read back."""
