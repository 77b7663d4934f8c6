"""Algorithms over more data than memory holds: deduplication, bucketing, hashing."""
