"""Inputs of steps: partitions, source files, upstream results, and the IO manager.

Modules here turn the inputs of a step into datasets; they run no operator.
"""
