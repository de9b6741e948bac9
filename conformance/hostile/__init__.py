"""Hostile clients of a controller, and what a broker notices of them.

`smallest_elements` makes requests that are filled with the smallest elements of each array, from Kafka's schemas;
`under_attack` sends them while a broker sends heartbeats. For tests and benchmarks of any controller.
"""
