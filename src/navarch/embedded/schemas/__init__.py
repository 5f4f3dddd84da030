"""Facts about the built-in kinds (names, fields, list keys, protobuf numbers), as data made by `generate`."""
