"""Exporters: write the records of a result in a format that other programs read."""
