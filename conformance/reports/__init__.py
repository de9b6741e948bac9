"""Runs as reports: lines of a terminal, JUnit XML, an HTML page, and a summary to publish.

They take a `Run` and know nothing of the controller; what runs cases never imports them.
"""
