"""View: a local web page that shows the nodes below a root and their records, read only."""
