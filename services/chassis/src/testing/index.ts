export {
  type FaultProxy,
  type FaultProxyOptions,
  resetSocket,
  startFaultProxy,
} from './fault-proxy.ts'
export { findNatsServer, withoutNatsServer } from './find-nats-server.ts'
export { freePort, onFreePort } from './free-port.ts'
export { createManualClock, type ManualClock } from './manual-clock.ts'
export { createSignalSource, type ManualSignals } from './manual-signals.ts'
export { createNatsKey, createNatsOperator, usersConfig } from './nats-access.ts'
export { slopeOf } from './slope.ts'
export { type NatsServer, type NatsServerOptions, startNatsServer } from './start-nats-server.ts'
export {
  type ProcessOptions,
  type StartedProcess,
  startProcess,
} from './start-process.ts'
export { type RedisServer, startRedisServer, withoutRedisServer } from './start-redis-server.ts'
export {
  createTestAuthority,
  createTestCertificates,
  type TestCertificates,
} from './test-certificates.ts'
export { testFactor, testSeed } from './test-seed.ts'
export { until } from './until.ts'
