"""Read Parquet and Arrow files as records."""
