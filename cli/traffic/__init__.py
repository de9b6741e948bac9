"""`mockraft capture`, `record` and `replay`."""
