"""What tutti_torchscript is made of. Nothing here imports torch before an instance loads, except `torch_import`."""
