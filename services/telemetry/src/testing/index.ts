export { OBSERVED_EVENTS, ThrowingMetrics, throwingObserver } from './throwing-observer.ts'
