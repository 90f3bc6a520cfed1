export type { Envelope, TensorHeader } from './envelope.ts'
