"""How does perfkit look in a notebook? Charts, the panel, tables of runs and scans, and the line magic."""
