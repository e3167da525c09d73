"""Two repositories, blueprints and fleet config: what they hold, what is wrong with them, what they render to. Pure."""
