"""The cases, one module per area; `mockraft.conformance.suite` imports them."""
