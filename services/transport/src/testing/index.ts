export { ENDPOINT_DEFAULTS } from '../endpoint-settings.ts'
export { Membership } from '../members/membership.ts'
export { executing, sendEnvelope, type TestHandler } from './envelopes.ts'
