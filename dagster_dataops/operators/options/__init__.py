"""Options and settings of operators: signatures, types, secrets, defaults."""
