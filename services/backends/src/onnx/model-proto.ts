/** Field numbers of onnx.proto. @see onnx/onnx.proto of the ONNX project */
export const MODEL = { IR_VERSION: 1, GRAPH: 7, FUNCTIONS: 25 } as const
export const GRAPH = {
  NODE: 1,
  INITIALIZER: 5,
  INPUT: 11,
  OUTPUT: 12,
  SPARSE_INITIALIZER: 15,
} as const
export const NODE = { INPUT: 1, OUTPUT: 2, OP_TYPE: 4, ATTRIBUTE: 5, DOMAIN: 7 } as const
export const TENSOR = { NAME: 8 } as const
export const SPARSE_TENSOR = { VALUES: 1 } as const
export const VALUE_INFO = { NAME: 1, TYPE: 2 } as const
export const TYPE = { TENSOR: 1, SEQUENCE: 4, MAP: 5, OPAQUE: 7, SPARSE: 8, OPTIONAL: 9 } as const
export const TENSOR_TYPE = { ELEMENT_TYPE: 1, SHAPE: 2 } as const
export const SHAPE = { DIM: 1 } as const
export const DIM = { VALUE: 1, PARAM: 2 } as const
