"""Web archives (WARC) as records."""
