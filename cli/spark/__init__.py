"""`mockraft spark`: captured traffic on Spark."""
