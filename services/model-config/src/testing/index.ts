export { modelInput, modelOutput } from './declared-tensors.ts'
export { type ConfigDraft, modelConfig } from './draft-config.ts'
export { instanceGroup } from './instance-group.ts'
export { FACE_ENSEMBLE, OCR_DETECTION, OCR_ENSEMBLE } from './published-configs.ts'
