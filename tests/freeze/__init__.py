"""Digests of what is decided today, so that a change of the code that should change no decision can prove it (see `records`)."""
