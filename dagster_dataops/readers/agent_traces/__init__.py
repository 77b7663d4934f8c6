"""Session files of coding agents as chat records."""
