"""`mockraft run`: a controller with simulated brokers, live in the terminal."""
