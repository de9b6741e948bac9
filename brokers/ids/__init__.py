"""Broker ids by hostname: a host that lost its disks gets its former id again.

`identity` is the decision, a pure function over the host map, the directories and the cluster's metadata; `host_map` is
the file `hosts.json` in a controller's data directory; `observed_cluster` reads used ids from the metadata log;
`broker_ids` combines the three before a broker starts.
"""
