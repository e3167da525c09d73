"""Kinds: what a kind is (model), how its file is read (kind_files), and what fields of it can say (formats, fields).

Nothing is imported here, so that the command line can use formats and fields without the validator of the server.
"""
