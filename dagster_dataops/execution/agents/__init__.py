"""Agents: process mode over leased parts of the input, on the nodes of a cluster."""
