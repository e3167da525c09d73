"""What commands do: a module per group of them, and what several of them share."""
