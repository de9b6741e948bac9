"""What a test says a controller shall do instead: stubs are data, tried at the door; no handler knows of them."""
