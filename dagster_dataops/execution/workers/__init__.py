"""Worker processes: start, protocol, scheduling, heartbeat and end."""
