import type { FlagTable } from '@tutti/chassis'
import { ADMISSION_DEFAULTS } from './admission.ts'
import { GRPC_SERVER_DEFAULTS } from './grpc/rpc-server.ts'
import { REST_DEFAULTS } from './rest/rest-options.ts'

const PORT = { type: 'int', min: 0, max: 65_535 } as const

/** The flags of every executable with front doors; names and defaults are tritonserver's where it has them. */
export const DOOR_FLAGS = {
  id: { type: 'string', default: 'triton', description: 'Name in the server metadata.' },
  'allow-grpc': { type: 'bool', default: true, description: 'Open the gRPC door.' },
  'grpc-address': { type: 'string', default: '0.0.0.0', description: 'Where gRPC listens.' },
  'grpc-port': { ...PORT, default: 8001, description: 'Port of gRPC; 0 takes any free one.' },
  'allow-http': { type: 'bool', default: true, description: 'Open the REST door.' },
  'http-address': { type: 'string', default: '0.0.0.0', description: 'Where REST listens.' },
  'http-port': { ...PORT, default: 8000, description: 'Port of REST; 0 takes any free one.' },
  'allow-metrics': { type: 'bool', default: true, description: 'Open the metrics endpoint.' },
  'metrics-address': { type: 'string', default: '0.0.0.0', description: 'Where metrics listen.' },
  'metrics-port': { ...PORT, default: 8002, description: 'Port of metrics; 0 takes any free one.' },
  'grpc-max-message-size': {
    type: 'int',
    min: 1,
    max: 2 ** 31 - 1,
    default: GRPC_SERVER_DEFAULTS.maxMessageBytes,
    unit: 'bytes',
    description: 'Largest gRPC message that is read.',
  },
  'grpc-window-size': {
    type: 'int',
    min: 65_535,
    max: 2 ** 31 - 1,
    default: GRPC_SERVER_DEFAULTS.windowBytes,
    unit: 'bytes',
    description: 'HTTP/2 flow-control window of a stream and of a connection.',
  },
  'grpc-max-concurrent-streams': {
    type: 'int',
    min: 1,
    max: 1_000_000,
    default: GRPC_SERVER_DEFAULTS.maxConcurrentStreamsPerConnection,
    unit: 'streams',
    description: 'gRPC calls on one connection; further ones wait at the client.',
  },
  'http-max-input-size': {
    type: 'int',
    min: 1,
    max: 2 ** 31 - 1,
    default: REST_DEFAULTS.maxInputBytes,
    unit: 'bytes',
    description: 'Largest REST request body, also after it is decompressed.',
  },
  'max-connections': {
    type: 'int',
    min: 1,
    max: 1_000_000,
    default: GRPC_SERVER_DEFAULTS.maxConnections,
    unit: 'connections',
    description: 'Open connections of each door; further ones are refused.',
  },
  'max-inflight-requests': {
    type: 'int',
    min: 1,
    max: 10_000_000,
    default: ADMISSION_DEFAULTS.maxRequests,
    unit: 'requests',
    description:
      'Inference requests that are read or worked on, all doors together; further ones fail at once.',
  },
  'max-inflight-bytes': {
    type: 'int',
    min: 1,
    default: ADMISSION_DEFAULTS.maxBytes,
    unit: 'bytes',
    description:
      'Bytes of requests that are read or worked on and of answers that are not taken yet, all doors together.',
  },
} as const satisfies FlagTable
