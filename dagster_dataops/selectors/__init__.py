"""Column selectors: ``foo[1].y,bar`` names elements of a record, to read or change them."""
