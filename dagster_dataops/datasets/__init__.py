"""JSON Lines files: dataset handles, reading by byte range, sampling, and atomic writing."""
