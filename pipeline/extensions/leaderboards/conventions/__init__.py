"""How the tools behind leaderboards measure, a file each, for `pipeline evaluate --as TOOL`."""
