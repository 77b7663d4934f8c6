"""Libraries that do the same work, each in a script for an interpreter with that library."""
