"""Orders of jobs that users of batch systems know: one plugin each, to be combined."""
