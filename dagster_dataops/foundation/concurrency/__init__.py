"""Threads, cores and forks of this process; generators that serve plain calls and coroutines."""
