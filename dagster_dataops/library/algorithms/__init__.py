"""Algorithms for data larger than memory: buckets, repeats, locality-sensitive hashing."""
