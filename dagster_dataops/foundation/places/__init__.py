"""Places of files: folders and buckets, read by ranges."""
