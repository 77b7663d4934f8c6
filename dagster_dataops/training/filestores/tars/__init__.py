"""Tar archives: headers, samples, scans of shards and indices."""
