"""Plans of assets: options of a pipeline, its source, the translator and the asset specs."""
