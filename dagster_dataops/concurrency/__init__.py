"""Facts about this process: background threads, usable cores, and whether forking is safe."""
