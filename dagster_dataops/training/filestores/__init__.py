"""Files by name and samples by number: tar shards, folders and jsonl files, here or by URL."""
