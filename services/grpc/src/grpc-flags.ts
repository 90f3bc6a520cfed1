import type { FlagTable, FlagValues } from '@tutti/chassis'
import { CONNECTION_LIFE } from './connections/connection-life.ts'
import { COMPRESSION_LEVELS } from './methods/compressed-answers.ts'

const TIME = { type: 'int', min: 0, max: 2 ** 31 - 1, unit: 'ms' } as const

/** The flags for services, compression and connections of the gRPC server. tritonserver has all but the first two. */
export const GRPC_FLAGS = {
  'grpc-health-watch': {
    type: 'bool',
    default: false,
    description:
      'Serve Watch of grpc.health.v1.Health: each change of readiness, within half a second.',
  },
  'grpc-reflection': {
    type: 'bool',
    default: false,
    description:
      'Serve grpc.reflection.v1 and v1alpha, which tell clients such as grpcurl the services and messages.',
  },
  'grpc-infer-response-compression-level': {
    type: 'enum',
    values: COMPRESSION_LEVELS,
    default: 'none',
    description: 'Compression of inference answers, for gRPC clients that accept gzip or deflate.',
  },
  'grpc-keepalive-time': {
    ...TIME,
    min: 1,
    default: CONNECTION_LIFE.keepaliveMs,
    description: 'Each gRPC connection is pinged at this interval.',
  },
  'grpc-keepalive-timeout': {
    ...TIME,
    min: 1,
    default: CONNECTION_LIFE.keepaliveTimeoutMs,
    description:
      'A gRPC connection whose client does not answer a ping within this time, or before the next ping, is dropped.',
  },
  'grpc-keepalive-permit-without-calls': {
    type: 'bool',
    default: CONNECTION_LIFE.isPingedWithoutCalls,
    description: 'Ping gRPC connections without open calls too.',
  },
  'grpc-http2-min-recv-ping-interval-without-data': {
    ...TIME,
    default: CONNECTION_LIFE.minPingIntervalMs,
    description:
      'Pings that follow one another faster, on a gRPC connection without open calls, are strikes.',
  },
  'grpc-http2-max-ping-strikes': {
    type: 'int',
    min: 0,
    max: 2 ** 31 - 1,
    default: CONNECTION_LIFE.maxPingStrikes,
    unit: 'pings',
    description:
      'More strikes than this end a gRPC connection; 0 is no limit. A call sets the count back.',
  },
  'grpc-max-connection-age': {
    ...TIME,
    default: CONNECTION_LIFE.maxAgeMs,
    description:
      'Clients of gRPC connections of this age, give or take a tenth, are told to connect again; 0 is no limit.',
  },
  'grpc-max-connection-age-grace': {
    ...TIME,
    default: CONNECTION_LIFE.maxAgeGraceMs,
    description: 'Calls that are open then have this time until they are cut off; 0 is no limit.',
  },
} as const satisfies FlagTable

/** Converts the flags to options of `startGrpcServer`. */
export function toGrpcOptions(flags: FlagValues<typeof GRPC_FLAGS>) {
  return {
    hasHealthWatch: flags['grpc-health-watch'],
    hasReflection: flags['grpc-reflection'],
    compressionLevel: flags['grpc-infer-response-compression-level'],
    keepaliveMs: flags['grpc-keepalive-time'],
    keepaliveTimeoutMs: flags['grpc-keepalive-timeout'],
    isPingedWithoutCalls: flags['grpc-keepalive-permit-without-calls'],
    minPingIntervalMs: flags['grpc-http2-min-recv-ping-interval-without-data'],
    maxPingStrikes: flags['grpc-http2-max-ping-strikes'],
    maxAgeMs: flags['grpc-max-connection-age'],
    maxAgeGraceMs: flags['grpc-max-connection-age-grace'],
  }
}
