"""Where records come from: readers, and files in parts."""
