"""Asset checks: declared checks over published files, and the error rate of operators.

A kind of check is one module in ``kinds``, imported by ``check_functions``.
"""
