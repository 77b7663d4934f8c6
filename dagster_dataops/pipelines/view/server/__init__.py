"""The server of the view: its pages, what it refuses, and the files that records name."""
