"""Identities: digests by which equal values and equal code are known as such, in any process."""
