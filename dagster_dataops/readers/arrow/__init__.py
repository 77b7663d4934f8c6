"""``read_parquet`` and ``read_arrow``: Parquet and Arrow files as records. Needs pyarrow."""
