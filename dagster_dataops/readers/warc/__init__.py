"""``read_warc``: web archives (WARC) as records. Needs warcio."""
