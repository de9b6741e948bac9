"""What a broker answers its clients: one file per API, and the list of them in `registry`."""
