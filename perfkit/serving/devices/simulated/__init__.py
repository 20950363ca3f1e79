"""What is a simulated device? An event timeline that real threads, or a virtual clock, drive."""
