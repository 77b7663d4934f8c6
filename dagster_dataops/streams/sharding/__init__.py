"""Read a stream with several processes: the same items, in the same order, with the same states."""
