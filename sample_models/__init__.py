"""Which models ship with perfkit? One file each, found by the entry points of the group `perfkit.models`."""
