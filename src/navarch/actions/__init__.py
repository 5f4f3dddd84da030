"""Actions: the steps of a cycle, one file each. `navarch.installed` finds them by walking this room."""
