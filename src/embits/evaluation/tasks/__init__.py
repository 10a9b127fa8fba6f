"""One module for each task that scores codes."""
