"""The command line: the real command as a process, against a real server."""
