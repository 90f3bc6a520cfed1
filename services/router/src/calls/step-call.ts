import type { ResponseSink } from '@tutti/tensor'
import type { ModelCall } from './model-call.ts'
import type { RequestDependencies } from './request-dependencies.ts'

/**
 * Calls what a step runs and hands its responses to `sink`, the last of them final, or one failure. Never throws. A wrapper is made of
 * another one and of what it adds: a bound, a second replica, an observer.
 */
export type StepCall = (o: RequestDependencies, call: ModelCall, sink: ResponseSink) => void
