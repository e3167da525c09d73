"""The HTTP client, against real sockets, proxies and TLS on loopback."""
