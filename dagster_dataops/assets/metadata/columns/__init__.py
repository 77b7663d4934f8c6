"""The columns of a result on the asset page: their schema, their values, and their sources."""
