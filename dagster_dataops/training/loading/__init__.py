"""Loaders and reading services: how a stream is read, by any number of processes and ranks."""
