"""What goes wrong, with real processes."""
