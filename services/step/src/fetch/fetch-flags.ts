import { type FlagTable, type FlagValues, FORMAT_FLAG, PROCESS_FLAGS } from '@tutti/chassis'
import { FETCH_BOUNDS } from '@tutti/repository'

const { 'exit-timeout-secs': _, version: __, 'log-file': ___, ...LOG_FLAGS } = PROCESS_FLAGS

/** The flags of `tutti-step fetch` and `tutti fetch`. */
export const FETCH_FLAGS = {
  uri: {
    type: 'string',
    description:
      'Address of the model: http(s)://HOST/PATH of a tar archive, gzipped or not, s3://BUCKET/PREFIX, gs://BUCKET/PREFIX, as://ACCOUNT/CONTAINER/PREFIX, hf://OWNER/NAME[@REVISION][/PATH], or oci://HOST/REPOSITORY:TAG[/PATH].',
  },
  to: {
    type: 'string',
    path: 'folder',
    description: 'Folder for the model. It appears when the fetch is complete.',
  },
  verify: {
    type: 'string',
    path: 'folder',
    description: 'Check the digest of this folder, and fetch nothing.',
  },
  digest: {
    type: 'string',
    description: 'Expected digest, sha256:HEX: of the archive for http(s), else of the tree.',
  },
  'print-digest': {
    type: 'bool',
    default: false,
    description: 'Print the digest.',
  },
  format: {
    ...FORMAT_FLAG,
    aliases: ['output'],
    description: 'json: print what was fetched or checked as JSON. Log lines go to standard error.',
  },
  'secret-dir': {
    type: 'string',
    path: 'folder',
    description: 'Folder of a Secret, with a file for each key.',
  },
  cache: {
    type: 'string',
    path: 'folder',
    description:
      'Folder that keeps downloads, for this and other fetches. It may be shared by processes on several machines.',
  },
  'cache-max-bytes': {
    type: 'int',
    min: 1,
    default: 100 * 2 ** 30,
    unit: 'bytes',
    description: 'Largest size of that folder. What was not used for the longest time goes first.',
  },
  'max-bytes': {
    type: 'int',
    min: 1,
    default: FETCH_BOUNDS.maxBytes,
    unit: 'bytes',
    description: 'Largest size of all files together, and of an archive.',
  },
  'max-files': {
    type: 'int',
    min: 1,
    max: 1_000_000,
    default: FETCH_BOUNDS.maxFiles,
    unit: 'files',
    description: 'Largest number of files.',
  },
  attempts: {
    type: 'int',
    min: 1,
    max: 1000,
    default: FETCH_BOUNDS.attempts,
    description: 'Consecutive attempts without progress, after which the fetch fails.',
  },
  'stall-timeout-secs': {
    type: 'int',
    min: 1,
    max: 3600,
    default: FETCH_BOUNDS.stallMs / 1000,
    unit: 's',
    description: 'Time without a byte after which an attempt fails.',
  },
  'progress-port': {
    type: 'int',
    min: 0,
    max: 65_535,
    default: 0,
    description:
      'Port on which `GET /tutti/v1/start` answers how many bytes have come, while the fetch runs; 0: none.',
  },
  'termination-log': {
    type: 'string',
    path: 'file',
    default: '/dev/termination-log',
    description: 'File for the message of a failure, if it exists.',
  },
  ...LOG_FLAGS,
} as const satisfies FlagTable

export type FetchFlags = FlagValues<typeof FETCH_FLAGS>
