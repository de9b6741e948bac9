"""`mockraft broker` and `mockraft broker-id`: one simulated broker as a process, and broker ids by hostname."""
