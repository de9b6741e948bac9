"""`mockraft decode`, `encode` and `explain`."""
