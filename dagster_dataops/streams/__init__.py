"""Lazy streams: items are pulled through stages, nothing is written, the position is JSON."""
