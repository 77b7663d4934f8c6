"""Secrets among options: by what they are known, and how they are hidden in texts and errors."""
