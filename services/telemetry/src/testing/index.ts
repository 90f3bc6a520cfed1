export {
  notingObserver,
  OBSERVED_EVENTS,
  ObservedMetrics,
  throwingObserver,
} from './noting-observer.ts'
