"""From words to a command: the grammar, the tables of commands, and the options that schemas give."""
