"""Whether a file is whole, by what it declares: sizes, ends, numbers of frames, checksums."""
