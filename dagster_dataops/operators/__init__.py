"""The definition of operators: contract, options, settings, identity and registration.

How operators are run belongs in `execution`.
"""
