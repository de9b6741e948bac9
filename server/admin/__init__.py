"""The HTTP API of a running controller, and the live page."""
