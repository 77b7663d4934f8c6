"""``read_delimited``: CSV and TSV files as records."""
