"""Tests of the code inside a model's process; run one folder up with `python -m unittest discover -t . -s tests`."""
