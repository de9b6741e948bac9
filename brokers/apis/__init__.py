"""What a broker answers its clients: one file per API."""
