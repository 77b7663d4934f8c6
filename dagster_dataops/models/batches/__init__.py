"""Batches of requests, which a server answers within a day."""
