"""Faults that are planted on purpose, one at a time, to see that the tests notice each of them."""
