"""`mockraft conformance`, the suite."""
