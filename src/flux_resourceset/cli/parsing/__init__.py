"""The tables of commands, the options that schemas give, and what the words of a command line say of them."""
