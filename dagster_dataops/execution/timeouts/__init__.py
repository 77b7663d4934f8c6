"""Time limits of single calls, one module for each way to enforce them."""
