"""The commands of `fleet`, on Git checkouts: what they read and write, and the programs and servers that they ask."""
