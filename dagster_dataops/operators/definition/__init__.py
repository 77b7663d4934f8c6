"""Definition of an operator: its class, its spec, and their construction."""
