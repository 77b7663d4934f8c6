"""Stages that call a function for several items at once, in threads, processes or an event loop."""
