"""Files as sources of streams: where they lie, how they are packed, lines and records in them."""
