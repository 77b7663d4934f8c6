"""The home of a node on an object store: its published files, and the journal of unfinished runs.

The folder of the node is a working copy then. Nothing in it counts that its home does not hold.
"""
