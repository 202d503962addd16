"""How fast it is: figures and ratios, printed beside their targets; nothing here asserts."""
