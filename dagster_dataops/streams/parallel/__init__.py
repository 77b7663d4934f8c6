"""Parallel ``map``: concurrent calls in threads, processes or an event loop."""
