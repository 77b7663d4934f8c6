"""Reporting: one HTML file about all nodes of a pipeline."""
