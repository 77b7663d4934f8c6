"""Metadata of results on the asset page: counts, columns, lineage, failures, source code.

Modules here turn reports and datasets into Dagster's metadata values; they use no step context.
"""
