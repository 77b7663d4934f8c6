"""Calls of language models: the client, limits shared by processes, stored replies, operators."""
