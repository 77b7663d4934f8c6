"""Sources: readers of records, and the files and places they read from."""
