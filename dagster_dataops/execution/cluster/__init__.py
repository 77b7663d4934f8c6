"""Clusters that run the records of one operator on several machines."""
