"""Several processes on one database file, some of them killed."""
