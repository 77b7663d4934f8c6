"""The head of a run over several machines: it leases parts of the input to agents."""
