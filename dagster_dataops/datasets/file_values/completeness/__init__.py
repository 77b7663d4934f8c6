"""Whether a file is whole, by what it tells itself: sizes, ends, numbers of frames, checksums."""
