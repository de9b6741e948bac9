"""The whole cluster as one broker knows it from the metadata log."""
