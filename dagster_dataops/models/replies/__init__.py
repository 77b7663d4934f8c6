"""Replies: their form, the store that keeps them, tokens, prices and latency."""
