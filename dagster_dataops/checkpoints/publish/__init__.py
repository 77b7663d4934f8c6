"""From settled spans to a published result: compose drafts, commit them, clean up."""
