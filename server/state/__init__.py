"""What a controller knows, as typed objects, and commands that leave records in its log."""
