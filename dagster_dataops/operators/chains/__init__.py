"""Chains: one operator made of several."""
