"""`mockraft fleet`: many simulated brokers in a few processes."""
