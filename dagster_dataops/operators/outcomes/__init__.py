"""What an operator returns for a record, and what became of the record."""
