"""A real server asked over HTTP, as a stranger who has only the documentation would ask it."""
