"""Digests of values, code and files, equal in every process for equal content.

They identify operators, options and inputs in fingerprints and code versions.
"""
