"""Records of large files: an index of lines, pages, searches, and work in the background."""
