"""Lazy streams: items are pulled through stages, nothing is written, the position is JSON.

The modules here are what users build and read streams with; the folders hold the parts.
"""
