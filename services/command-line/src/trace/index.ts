export { ASK_FOR_STEPS, TRACED_FLAGS, traceModel } from './trace-model.ts'
export { TraceResult } from './trace-result.ts'
export { renderTrace } from './trace-text.ts'
