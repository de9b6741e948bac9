"""Authorization of requests, for controllers and simulated brokers: types of ACLs, their index, and the decision.

The records and what is allowed by which request belong to the servers.
"""
