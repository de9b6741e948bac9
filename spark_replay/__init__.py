"""Captured Kafka traffic: from capture files to exchanges. Never imports the server."""
