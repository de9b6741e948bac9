"""The parts of our documents that commands write, so that they stay true.

`mockraft conformance table`, `mockraft differences` and `mockraft conformance diff` with `--write-docs` replace the
text between two marks of a page (`marked_text`). What they write comes from runs on Kafka's own controllers, from the
kept runs (`baselines`) and from the tables of the releases:

- `parity_table`: cases of each area that pass on mockraft and on Kafka, at some levels of metadata.version;
- `release_changes`: what a newer release's controller does differently.

Tests compare each page with what its command would write, as far as no Kafka is needed for it.
"""
