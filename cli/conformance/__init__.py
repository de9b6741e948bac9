"""`mockraft conformance`: the suite and the fuzzer."""
