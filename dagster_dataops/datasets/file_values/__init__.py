"""Files as values of records: references, what they name, and bytes that an operator returns."""
