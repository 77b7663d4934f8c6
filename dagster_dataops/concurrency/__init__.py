"""Threads beside the work: background threads, and when a process may fork."""
