"""What the asset page shows of a result: counts, columns, lineage, failures."""
