"""Document files by their format: opened, and read page by page."""
