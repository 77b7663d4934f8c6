"""The stages that put several items together: buckets of a length or a cost, and packed windows."""
