"""What survives a crash: settled spans in a journal, their output in segments, and publishing."""
