"""Randomness by name: seeds derived from one another, and draws that can be taken up anywhere."""
