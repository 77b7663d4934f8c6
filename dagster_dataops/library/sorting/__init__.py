"""Sort and compare more records than memory holds."""
