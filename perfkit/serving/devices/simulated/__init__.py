"""The simulated device: an event timeline that real threads, or a virtual clock, drive."""
