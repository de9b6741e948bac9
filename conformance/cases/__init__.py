"""The cases, one module an area; `mockraft.conformance.suite` imports them."""
