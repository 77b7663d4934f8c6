"""How records are worked through, one module a concurrency mode."""
