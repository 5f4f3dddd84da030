"""The one library of builders and test worlds. Tests import from here and never from another test module."""
