"""The folder of a node: its files, its manifest, and the fingerprint of a run."""
