"""The folder of a node: its files, the manifest of its result, and the fingerprint of a run."""
