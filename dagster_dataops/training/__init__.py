"""Crude data and its files, cooking of samples, data loaders. The core does not import it."""
