"""Runners: how each kind of operator is run, one module a kind.

A new kind is a new module and a line in the table of `runner`.
"""
