"""`PartFiles`: numbered part files as records, with shuffling, epochs and batches."""
