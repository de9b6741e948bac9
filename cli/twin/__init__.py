"""`mockraft twin`: a real cluster's control plane, copied; one file per thing to do with it."""
