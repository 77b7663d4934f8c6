"""Column selectors: ``foo[1].y,bar`` names elements inside a record, to read or to change them."""
