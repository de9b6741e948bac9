"""Commands that use a running controller's admin API."""
