export { executing, sendEnvelope, type TestHandler } from './envelopes.ts'
