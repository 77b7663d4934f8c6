"""The versions of a result: listed, compared record by record, published again."""
