"""Threads beside the work: background threads, timers, and when a process may fork."""
