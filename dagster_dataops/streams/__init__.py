"""Lazy streams: items are pulled through stages, nothing is written, the position is JSON.

These modules hold the functions and classes for users; the folders hold the implementation.
"""
