"""Positions: how what is held between two records is written as JSON, and told from others."""
