"""The kinds of declared checks, one module each: arguments, inspection, and YAML form."""
