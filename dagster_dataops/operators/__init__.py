"""The definition of operators: their contract, options, settings, identity and registration."""
