"""The fingerprint of a stream, and what its functions have changed since it was taken."""
