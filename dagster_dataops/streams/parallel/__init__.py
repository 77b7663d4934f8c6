"""``map`` with concurrent calls, in threads, processes or on an event loop."""
