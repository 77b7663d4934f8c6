"""Libraries that do the same work, each a script run by an interpreter that has it."""
