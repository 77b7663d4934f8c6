"""Read web archives (WARC) as records."""
