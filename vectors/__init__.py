"""Vectors for codecs of Kafka's protocol: bodies as JSON and as the bytes that Kafka's own classes make of them.

A folder of vectors has `manifest.json` and, for each release, a file of JSON lines for each message (`vector_files`).
`making` fills one: `bodies` draws JSON trees from a release's specs, and the release's classes write them. `judging`
asks another codec the same questions, through a program's standard input and output.
"""
