"""What ends a process whose interpreter is held, and what the next process learns from it."""
