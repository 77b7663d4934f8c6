"""The chat record: conversations with tools, parts and reasoning, and its rules."""
