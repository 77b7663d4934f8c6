"""Streams: records pulled lazily through stages, nothing written, a position that is JSON."""
