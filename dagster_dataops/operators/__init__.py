"""What an operator is: its contract, its options, its identity, its registration."""
