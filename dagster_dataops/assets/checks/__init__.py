"""Asset checks: declared checks, the error rate, and how files are inspected."""
