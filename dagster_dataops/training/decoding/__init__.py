"""Decode the parts of crude samples, and make samples of the types that datasets declare."""
