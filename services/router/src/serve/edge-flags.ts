import { ALL_ADDRESSES, type FlagTable, type FlagValues } from '@tutti/chassis'

const PORT = { type: 'int', min: 0, max: 65_535 } as const

/** The flags of the servers for requests from outside. */
export const EDGE_FLAGS = {
  'edge-file': {
    type: 'string',
    path: 'file',
    description:
      'Also listen for requests from outside. This JSON file maps each host to its models and its bearer token. It is read again when it changes.',
  },
  'edge-secret-name': {
    type: 'string',
    description:
      'With --kubernetes: like --edge-file, but from the key edge.json of this Secret of the namespace. The router watches it.',
  },
  'edge-address': {
    type: 'string',
    default: ALL_ADDRESSES,
    description: 'Address of the listeners for requests from outside.',
  },
  'edge-grpc-port': {
    ...PORT,
    default: 9001,
    description: 'Port of gRPC for requests from outside; 0 takes any free port.',
  },
  'edge-http-port': {
    ...PORT,
    default: 9000,
    description: 'Port of REST for requests from outside; 0 takes any free port.',
  },
} as const satisfies FlagTable

export type EdgeFlags = FlagValues<typeof EDGE_FLAGS>
