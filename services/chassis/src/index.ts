export type { CallContext, TraceParent } from './call-context.ts'
export { type Clock, systemClock } from './clock.ts'
