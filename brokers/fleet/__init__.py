"""Fleets of simulated brokers: several in this process, or thousands in a few worker processes that follow a script.

* `fleet` starts several brokers in this process.
* `plan` expands the user's script, a JSON or TOML file, with a seed into timed actions: always the same ones.
* A shard is one process's part of the plan, sent to it through a pipe; `worker` is that process.
* `processes` is the parent of the worker processes.
* `runner` executes a shard's actions on its brokers. `figures` add up over processes; `summary` keeps
  one sample a second.

A plan does not react to the running fleet. Large fleets share one reader of the metadata log per process
(`brokers.shared_replication`); smaller ones replicate per broker, as Kafka's brokers do.
"""
