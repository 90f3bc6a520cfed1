import type { FlagTable, FlagValues } from '@tutti/chassis'

const PORT = { type: 'int', min: 0, max: 65_535 } as const

/** Requests from outside have servers of their own. */
export const EDGE_FLAGS = {
  'edge-file': {
    type: 'string',
    description:
      'Open servers for requests from outside. This JSON file says which host leads to which models, and with which bearer token. It is read again when it changes.',
  },
  'edge-address': {
    type: 'string',
    default: '0.0.0.0',
    description: 'Where the servers for requests from outside listen.',
  },
  'edge-grpc-port': {
    ...PORT,
    default: 9001,
    description: 'Port of gRPC for requests from outside; 0 takes any free one.',
  },
  'edge-http-port': {
    ...PORT,
    default: 9000,
    description: 'Port of REST for requests from outside; 0 takes any free one.',
  },
} as const satisfies FlagTable

export type EdgeFlags = FlagValues<typeof EDGE_FLAGS>
