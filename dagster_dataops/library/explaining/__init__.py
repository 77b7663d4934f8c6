"""Explaining: the reasons of drops, found by calling operators of the library again."""
