"""Steps: the asset and check definitions that run planned operators, and the code they run.

A module here creates a Dagster definition, or is called by the compute function of one.
"""
