"""Background threads, and the check whether this process can fork safely."""
