"""The stages that transform items one by one in the reading thread; one subject a module."""
