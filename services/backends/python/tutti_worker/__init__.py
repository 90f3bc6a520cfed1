"""The Python side of Tutti's Python backend: a zygote per environment and a process per model instance."""
