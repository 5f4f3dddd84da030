"""When waiting jobs start: the scheduler runs forward in virtual time many times, each time over other run times."""
