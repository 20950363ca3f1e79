"""Does perfkit's device side hold on this GPU? Fifteen checks in four minutes, by torch, numpy and pynvml alone."""
