"""The notebook face: charts, the panel, tables of runs and scans, and the line magic."""
