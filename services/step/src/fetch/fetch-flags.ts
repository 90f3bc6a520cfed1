import { type FlagTable, type FlagValues, PROCESS_FLAGS } from '@tutti/chassis'
import { FETCH_BOUNDS } from '@tutti/repository'

const { 'exit-timeout-secs': _, version: __, ...LOG_FLAGS } = PROCESS_FLAGS

/** The flags of `tutti-step fetch` and `tutti fetch`. */
export const FETCH_FLAGS = {
  uri: {
    type: 'string',
    description:
      'What to fetch: http(s)://HOST/PATH of a tar archive, gzipped or not, or s3://BUCKET/PREFIX.',
  },
  to: {
    type: 'string',
    description: 'The model’s directory, which is there whole once it is there.',
  },
  verify: {
    type: 'string',
    description: 'Fetch nothing: check the digest of this folder.',
  },
  digest: {
    type: 'string',
    description: 'sha256:HEX, of the archive for http(s), of the tree for s3 and --verify.',
  },
  'print-digest': {
    type: 'bool',
    default: false,
    description: 'Print the digest of what was fetched or checked.',
  },
  'secret-dir': {
    type: 'string',
    description: 'Folder of a Secret: a file for each key.',
  },
  'max-bytes': {
    type: 'int',
    min: 1,
    default: FETCH_BOUNDS.maxBytes,
    unit: 'bytes',
    description: 'Most that all files may have together, and that an archive may have.',
  },
  'max-files': {
    type: 'int',
    min: 1,
    max: 1_000_000,
    default: FETCH_BOUNDS.maxFiles,
    unit: 'files',
    description: 'Most files.',
  },
  attempts: {
    type: 'int',
    min: 1,
    max: 1000,
    default: FETCH_BOUNDS.attempts,
    description: 'Attempts in a row that may bring nothing new.',
  },
  'stall-timeout-secs': {
    type: 'int',
    min: 1,
    max: 3600,
    default: FETCH_BOUNDS.stallMs / 1000,
    unit: 's',
    description: 'Time without a byte, after which an attempt is given up.',
  },
  'termination-log': {
    type: 'string',
    default: '/dev/termination-log',
    description: 'File that gets the message of a failure, if it exists.',
  },
  ...LOG_FLAGS,
} as const satisfies FlagTable

export type FetchFlags = FlagValues<typeof FETCH_FLAGS>
