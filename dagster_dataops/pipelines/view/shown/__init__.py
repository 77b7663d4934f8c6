"""Values for templates: cells of tables, histograms, the picture of the graph."""
