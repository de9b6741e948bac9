"""The sockets that clients of a broker connect to."""
