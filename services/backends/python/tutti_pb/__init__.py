"""The parts of triton_python_backend_utils. Models import that module, never this package."""
