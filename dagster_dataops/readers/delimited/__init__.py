"""Read CSV and TSV files as records."""
