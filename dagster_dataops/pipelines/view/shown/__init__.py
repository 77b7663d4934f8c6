"""What pages show: records, changes by word, pictures of numbers and of the graph."""
