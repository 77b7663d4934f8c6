"""Numbered part files as records: shuffled, over epochs, in batches."""
