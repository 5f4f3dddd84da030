"""EASY backfill: the first job that does not fit is promised its earliest start, and later jobs may not delay it."""
