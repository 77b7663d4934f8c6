"""Feed training: crude data and its files, cooked samples, loaders. The core does not import it."""
