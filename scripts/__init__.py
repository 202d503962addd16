"""What the Makefile runs besides the planner itself."""
