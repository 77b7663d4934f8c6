"""The stages that process items one by one in the reading thread."""
