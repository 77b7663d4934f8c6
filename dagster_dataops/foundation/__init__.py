"""The lowest layer: places of files, digests, selectors, threads and locks."""
