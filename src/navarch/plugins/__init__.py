"""Plugins: the rules of a policy, one file each. `navarch.installed` finds them by walking this room."""
