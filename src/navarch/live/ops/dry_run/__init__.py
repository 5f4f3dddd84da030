"""`navarch run --dry-run`: `comparison` follows what the scheduler in charge does, `report` writes how it differs."""
