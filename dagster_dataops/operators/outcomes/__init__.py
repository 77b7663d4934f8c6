"""Return values of operators, and the outcomes of records."""
