"""JSON Lines files: handles on them, reading them by byte range, replacing them whole."""
