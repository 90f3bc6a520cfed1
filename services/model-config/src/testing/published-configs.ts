/*
 * Configurations in the style of the two systems that must run unchanged: their names, shapes and data flow, with the
 * separators, quotes and comments that people write.
 */

/** Face restoration: three TorchScript models in a row; names with dots. */
export const FACE_ENSEMBLE = `name: "ens_face_restoration_v2.1"
platform: "ensemble"
max_batch_size: 0
input [
  {
    name: "raw_image"
    data_type: TYPE_UINT8
    dims: [ -1, -1, 3 ]
  }
]
output [
  {
    name: "image_out"
    data_type: TYPE_UINT8
    dims: [ -1, -1, 3 ]
  }
]
ensemble_scheduling {
  step [
    {
      model_name: "pre_gfpgan"
      model_version: -1
      input_map { key: "input__0" value: "raw_image" }
      output_map { key: "output__0" value: "preprocessed_image" }
    },
    {
      model_name: "infer_face_restoration_v2.1"
      model_version: -1
      input_map { key: "input__0" value: "preprocessed_image" }
      output_map { key: "output__0" value: "net_out" }
    },
    {
      model_name: "post_gfpgan"
      model_version: -1
      input_map { key: "input__0" value: "net_out" }
      output_map { key: "output__0" value: "image_out" }
    }
  ]
}
`

/** Text detection of the OCR system: an ONNX model whose tensor names have colons and slashes. */
export const OCR_DETECTION = `name: "text_detection"
platform: "onnxruntime_onnx"
max_batch_size : 256
input [
  {
    name: "input_images:0"
    data_type: TYPE_FP32
    dims: [ -1, -1, 3 ]
  }
]
output [
  {
    name: "feature_fusion/Conv_7/Sigmoid:0"
    data_type: TYPE_FP32
    dims: [ -1, -1, 1 ]
  }
]
output [
  {
    name: "feature_fusion/concat_3:0"
    data_type: TYPE_FP32
    dims: [ -1, -1, 5 ]
  }
]
`

/** The OCR ensemble: a tensor with two consumers, a join of three, and text as the result. */
export const OCR_ENSEMBLE = `# one image in, the texts on it out
name: 'ensemble_model'
platform: 'ensemble'
max_batch_size: 256;
input { name: "input_image", data_type: TYPE_UINT8, dims: [-1] }
output { name: "recognized_text", data_type: TYPE_STRING, dims: [-1] }
ensemble_scheduling: {
  step: [
    { model_name: "detection_preprocessing" model_version: -1
      input_map: { key: "detection_preprocessing_input" value: "input_image" }
      output_map: { key: "detection_preprocessing_output" value: "preprocessed_image" } },
    { model_name: "text_detection" model_version: -1
      input_map: { key: "input_images:0" value: "preprocessed_image" }
      output_map: { key: "feature_fusion/Conv_7/Sigmoid:0" value: "Sigmoid:0" }
      output_map: { key: "feature_fusion/concat_3:0" value: "concat_3:0" } },
    { model_name: "detection_postprocessing" model_version: -1
      input_map: [
        { key: "detection_postprocessing_input_1" value: "Sigmoid:0" },
        { key: "detection_postprocessing_input_2" value: "concat_3:0" },
        { key: "detection_postprocessing_input_3" value: "preprocessed_image" }
      ]
      output_map: { key: "detection_postprocessing_output" value: "cropped_images" } },
    { model_name: "text_recognition" model_version: -1
      input_map: { key: "INPUT__0" value: "cropped_images" }
      output_map: { key: "OUTPUT__0" value: "recognition_output" } },
    { model_name: "recognition_postprocessing" model_version: -1
      input_map: { key: "recognition_postprocessing_input" value: "recognition_output" }
      output_map: { key: "recognition_postprocessing_output" value: "recognized_text" } }
  ]
}
`
