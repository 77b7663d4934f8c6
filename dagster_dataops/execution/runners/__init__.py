"""Runners: run operators, one module for each kind of operator.

A new kind is a new module here and a line in the table of `operators.kinds`.
"""
