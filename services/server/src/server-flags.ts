import { ALL_ADDRESSES, type FlagTable } from '@tutti/chassis'
import { GRPC_FLAGS, GRPC_SERVER_DEFAULTS } from '@tutti/grpc'
import { REST_DEFAULTS } from '@tutti/rest'
import { ADMISSION_DEFAULTS, tlsFlags } from '@tutti/serving'

const ADDRESS = { type: 'string', default: ALL_ADDRESSES } as const
const PORT = { type: 'int', min: 0, max: 65_535 } as const

/** Flags of tritonserver that steps and routers refuse, each with the reason. */
export const REFUSED_OVER_BROKERS = {
  'model-namespacing':
    'only tutti serve has it: steps and routers tell each other models by name alone, whichever repository has them',
} as const

/** The flags of every executable that serves gRPC, HTTP and metrics; names and defaults are tritonserver's where it has them. */
export const SERVER_FLAGS = {
  id: { type: 'string', default: 'triton', description: 'Name of the server in its metadata.' },
  'allow-grpc': { type: 'bool', default: true, description: 'Serve gRPC.' },
  'grpc-address': { ...ADDRESS, description: 'Address of gRPC; `::`: all, of IPv4 too.' },
  'grpc-port': { ...PORT, default: 8001, description: 'Port of gRPC; 0 takes any free port.' },
  'allow-http': { type: 'bool', default: true, description: 'Serve HTTP (REST).' },
  'http-address': { ...ADDRESS, description: 'Address of HTTP; `::`: all, of IPv4 too.' },
  'http-port': { ...PORT, default: 8000, description: 'Port of HTTP; 0 takes any free port.' },
  'allow-metrics': { type: 'bool', default: true, description: 'Serve metrics.' },
  'metrics-address': { ...ADDRESS, description: 'Address of metrics; `::`: all, of IPv4 too.' },
  'metrics-port': {
    ...PORT,
    default: 8002,
    description: 'Port of metrics; 0 takes any free port.',
  },
  ...tlsFlags('grpc', 'gRPC'),
  ...tlsFlags('http', 'HTTP'),
  ...tlsFlags('metrics', 'metrics'),
  'grpc-max-message-size': {
    type: 'int',
    min: 1,
    max: 2 ** 31 - 1,
    default: GRPC_SERVER_DEFAULTS.maxMessageBytes,
    unit: 'bytes',
    description: 'Largest gRPC message that the server reads.',
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
    description: 'gRPC calls on one connection. Clients hold further calls back.',
  },
  ...GRPC_FLAGS,
  'http-max-input-size': {
    type: 'int',
    min: 1,
    max: 2 ** 31 - 1,
    default: REST_DEFAULTS.maxInputBytes,
    unit: 'bytes',
    description: 'Largest body of an HTTP request, as sent and after decompression.',
  },
  'http-max-json-values': {
    type: 'int',
    min: 1,
    max: 2 ** 31 - 1,
    default: REST_DEFAULTS.maxJsonValues,
    unit: 'values',
    description:
      'Numbers, texts, objects and arrays in the JSON of one HTTP request of more than 256 KiB.',
  },
  'http-json-timeout-secs': {
    type: 'int',
    min: 1,
    max: 3600,
    default: REST_DEFAULTS.jsonTimeoutMs / 1000,
    unit: 's',
    description: 'Processor time to parse the JSON of one HTTP request of more than 256 KiB.',
  },
  'max-connections': {
    type: 'int',
    min: 1,
    max: 1_000_000,
    default: GRPC_SERVER_DEFAULTS.maxConnections,
    unit: 'connections',
    description:
      'Open connections on each port. For a further one the server ends the one that is idle longest.',
  },
  'max-connections-per-address': {
    type: 'int',
    min: 0,
    max: 1_000_000,
    default: GRPC_SERVER_DEFAULTS.maxConnectionsPerAddress,
    unit: 'connections',
    description:
      'The same for those of one client address; 0 is no limit. Not for ports of exposure, where a proxy is the client.',
  },
  'max-inflight-requests': {
    type: 'int',
    min: 1,
    max: 10_000_000,
    default: ADMISSION_DEFAULTS.maxRequests,
    unit: 'requests',
    description: 'Inference requests in flight, over all ports. Further requests fail at once.',
  },
  'max-inflight-bytes': {
    type: 'int',
    min: 1,
    default: ADMISSION_DEFAULTS.maxBytes,
    unit: 'bytes',
    description:
      'Bytes of requests in flight, of tensors between steps of ensembles, and of responses that clients have not read yet, over all ports.',
  },
  'max-waiting-bytes': {
    type: 'int',
    min: 1,
    unit: 'bytes',
    description:
      'Bytes of calls that wait for their clients: half requests, and answers that are not read. Beyond it the call ends that has waited longest. Default: half of --max-inflight-bytes.',
  },
  'max-waiting-bytes-per-client': {
    type: 'int',
    min: 1,
    unit: 'bytes',
    description:
      'The same for one identity, and for one connection, except those to ports of exposure. One call alone may have more. Default: a quarter of --max-inflight-bytes.',
  },
  'min-client-rate': {
    type: 'int',
    min: 0,
    default: 16_384,
    unit: 'bytes/s',
    description:
      'Least rate at which a client sends a request, or reads an answer, while more than half of --max-inflight-bytes is in use; 0 for none. A slower call ends.',
  },
  'min-client-rate-seconds': {
    type: 'int',
    min: 1,
    max: 3600,
    default: 10,
    unit: 's',
    description: 'Time for which a client may be slower than --min-client-rate.',
  },
  'allow-client-shm': {
    type: 'bool',
    description:
      'Let clients register shared memory of this machine, for inputs and outputs. Default: in tutti serve, if HTTP and gRPC listen on loopback addresses only.',
  },
  'audit-log': {
    type: 'bool',
    default: true,
    description:
      'Log who loads and unloads models, and each call that is refused for who makes it. Refused calls are logged once a second after the first 100.',
  },
} as const satisfies FlagTable
