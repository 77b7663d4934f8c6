"""From a pipeline to asset specs: sources, inputs, options and the translator."""
