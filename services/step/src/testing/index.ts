export { openTestStep } from './open-test-step.ts'
export { ScriptedStepEndpoint } from './scripted-endpoint.ts'
export {
  SCRIPTED_TIMES,
  ScriptedEngine,
  type ScriptedExecution,
  ScriptedModel,
  streamResponses,
} from './scripted-engine.ts'
export {
  batchRequest,
  floats,
  RecordingSink,
  requestContext,
} from './step-builders.ts'
