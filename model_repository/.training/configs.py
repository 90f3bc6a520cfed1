"""The config.pbtxt of the face restoration models, with the tensors of the published repository."""

IMAGE = ("TYPE_UINT8", "-1, -1, 3")
PICTURE = ("TYPE_FP32", "1, 3, -1, -1")
SQUARE = ("TYPE_FP32", "1, 3, 256, 256")

FIRST, SECOND = "v2.1", "v2.2"  # the second exists as TorchScript only


def network_name(version):
    return f"infer_face_restoration_{version}"


def ensemble_name(version):
    return f"ens_face_restoration_{version}"


# name -> (input, output)
MODELS = {
    "pre_gfpgan": (IMAGE, PICTURE),
    network_name(FIRST): (PICTURE, PICTURE),
    network_name(SECOND): (PICTURE, PICTURE),
    "post_gfpgan": (PICTURE, IMAGE),
    "gfpgan": (SQUARE, SQUARE),
}


def steps_of(version):
    """(model, what goes in, what comes out): each version has its own network between the same two."""
    return [
        ("pre_gfpgan", "raw_image", "preprocessed_image"),
        (network_name(version), "preprocessed_image", "net_out"),
        ("post_gfpgan", "net_out", "image_out"),
    ]


def tensor(field, name, data_type, dims):
    return f"""{field} [
  {{
    name: "{name}"
    data_type: {data_type}
    dims: [ {dims} ]
  }}
]
"""


def model_config(name, platform):
    source, result = MODELS[name]
    return (
        f'name: "{name}"\nplatform: "{platform}"\nmax_batch_size: 0\n'
        + tensor("input", "input__0", *source)
        + tensor("output", "output__0", *result)
    )


def ensemble_config(version):
    steps = ",\n".join(
        f"""    {{
      model_name: "{model}"
      model_version: -1
      input_map {{
        key: "input__0"
        value: "{source}"
      }}
      output_map {{
        key: "output__0"
        value: "{result}"
      }}
    }}"""
        for model, source, result in steps_of(version)
    )
    return (
        f'name: "{ensemble_name(version)}"\nplatform: "ensemble"\nmax_batch_size: 0\n'
        + tensor("input", "raw_image", *IMAGE)
        + tensor("output", "image_out", *IMAGE)
        + f"ensemble_scheduling {{\n  step [\n{steps}\n  ]\n}}\n"
    )
