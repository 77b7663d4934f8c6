"""Digests of values and of code, equal in every process for equal values and equal code."""
