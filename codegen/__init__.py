"""Code generator from Kafka's message specs to the Python classes of `mockraft.wire`.

The generator is a pure function from specs to {path: text} and uses the standard library only. `make generate` writes
its output into `wire/messages`, `wire/records`, `wire/api_keys.py` and `wire/error_codes.py`;
`python -m mockraft.codegen --check` fails if the tree differs. It corresponds to Kafka's own `generator` module
(MessageGenerator, MessageDataGenerator, ApiMessageTypeGenerator).

Steps, one module each:

- `parse` reads the JSON into the typed specs of `spec` (`versions` has the algebra of version ranges), and `check`
    refuses specs that cannot become code;
- `emit_module` puts together one module per message: `emit_class` the classes, `emit_reader` and `emit_writer` one
    straight-line function per version, `needs` the imports and tables. Versions with identical code share a function;
- `emit_package` writes the `__init__` and `lookup` of a generated package, `emit_numbers` the constants;
- `generate` compares the result with the files on disk.

The generated code is made for speed: runs of fixed-size fields are packed by one Struct, and bounds are checked once
per message where that is safe.

Besides this, `overlay` generates the classes of a proposal's specs at run time, and `every_release` those that captures
need. Both are used outside development.
"""
