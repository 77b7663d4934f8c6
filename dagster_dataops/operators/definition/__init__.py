"""What an operator is: its class, its spec, and how both are made."""
