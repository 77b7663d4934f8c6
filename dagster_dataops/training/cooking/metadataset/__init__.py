"""Metadatasets in YAML: their grammar, the plan of a split, the stream that mixes the leaves."""
