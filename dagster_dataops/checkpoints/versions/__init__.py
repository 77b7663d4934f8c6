"""Earlier results of a node: kept when a result is published, listed, and published again."""
