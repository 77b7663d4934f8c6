"""What a step reads: partitions, paths, upstream results, IO manager."""
