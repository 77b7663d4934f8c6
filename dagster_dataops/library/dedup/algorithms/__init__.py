"""Algorithms of library operators for more data than memory holds."""
