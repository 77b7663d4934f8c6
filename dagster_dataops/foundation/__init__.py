"""What all other parts stand on: places of files, hashing, selectors, threads and locks."""
