"""Where the calls of an operator run, one module for each concurrency mode."""
