"""File sources: locating, listing, decompressing and reading files as lines and records."""
