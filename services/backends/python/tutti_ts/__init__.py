"""The parts of tutti_torchscript. Nothing here imports torch before an instance loads, except `torch_import`."""
