"""Ratios of our speed and memory to the released code's, each measured in one run."""
