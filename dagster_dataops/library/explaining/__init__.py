"""Explaining: why operators of the library dropped records, asked again of the same operator."""
