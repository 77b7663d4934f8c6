"""A text in compressed frames with an index: read by byte range of the text, and by `zstd -d`."""
