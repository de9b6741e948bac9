"""The APIs of the controller listener, one file each, and the registry that lists them."""
