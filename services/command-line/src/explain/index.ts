export { Explanation, explainPlan, REQUESTED_OUTPUT_FLAG } from './explanation.ts'
export { type FoundPlan, planAccepted } from './plan-accepted.ts'
export { renderExplanation } from './render-explanation.ts'
