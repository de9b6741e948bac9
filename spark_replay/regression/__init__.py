"""A captured controller's past against its next version: rules, bindings, replay, differences."""
