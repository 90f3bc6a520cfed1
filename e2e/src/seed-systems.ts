import { ROOT } from './serving.ts'

/** Where the face system with TorchScript files is: the four models of the first version, and the second version's two. */
export const FACE = `${ROOT}model_repository/.variants/torchscript`
export const FACE_MODELS = [
  'pre_gfpgan',
  'infer_face_restoration_v2.1',
  'post_gfpgan',
  'ens_face_restoration_v2.1',
] as const

/** Where the OCR system is. */
export const OCR = `${ROOT}model_repository`
export const OCR_MODELS = [
  'detection_preprocessing',
  'text_detection',
  'detection_postprocessing',
  'text_recognition',
  'recognition_postprocessing',
  'ensemble_model',
] as const

/** The pictures that the systems are shown with. */
export const SAMPLES = `${ROOT}model_repository/.samples`
