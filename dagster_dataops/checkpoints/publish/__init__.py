"""From settled records to a published result: compose drafts, commit them, clean up."""
