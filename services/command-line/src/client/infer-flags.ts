import type { FlagTable, FlagValues } from '@tutti/chassis'
import { FORMAT_FLAG } from '../command/with-flags.ts'

/** Flags of a request: its inputs and the version of its model. */
export const REQUEST_FLAGS = {
  input: {
    type: 'string',
    path: 'file',
    aliases: ['i'],
    repeatable: true,
    description:
      'NAME=VALUE, a number, JSON or text; NAME=@FILE; NAME=@- for standard input. Files: .npy, .json, .png for UINT8 pictures, text or any file for BYTES, or the bytes of the tensor. Repeat the flag for more.',
  },
  shape: {
    type: 'string',
    repeatable: true,
    description:
      'NAME=1,3,224: the shape of an input, where its values leave several. Repeat the flag for more.',
  },
  'model-version': {
    type: 'int',
    min: 1,
    description: 'Version of the model. Default: the one that the server chooses.',
  },
} as const satisfies FlagTable

export const URL_FLAG = {
  type: 'string',
  default: 'grpc://127.0.0.1:8001',
  description: 'Address of the server: grpc://, grpcs://, http:// or https://. Streams need gRPC.',
} as const satisfies FlagTable[string]

/** Flags of a client's credentials, and of the authorities that it trusts. */
export const CREDENTIAL_FLAGS = {
  'token-file': {
    type: 'string',
    path: 'file',
    description:
      'File with a bearer token for the server. Without it, TUTTI_TOKEN of the environment.',
  },
  'tls-ca': {
    type: 'string',
    path: 'file',
    description: 'File with the authorities of the server, in PEM. Default: those of Node.',
  },
  'tls-cert': {
    type: 'string',
    path: 'file',
    description: "File with the client's certificate, in PEM.",
  },
  'tls-key': { type: 'string', path: 'file', description: "File with the client's key, in PEM." },
} as const satisfies FlagTable

export type AccessFlags = FlagValues<typeof CREDENTIAL_FLAGS>

/** Seconds for each call before the request itself, such as that for a model's metadata. */
export const LOOK_UP_SECS = 10

/** Flags of a connection to a server, except for its address. */
export const CONNECTION_FLAGS = {
  ...CREDENTIAL_FLAGS,
  'timeout-secs': {
    type: 'int',
    min: 1,
    max: 86_400,
    unit: 's',
    description: `Time for each call of the server. Default: ${LOOK_UP_SECS} s for what is asked before a request, no limit for the request itself.`,
  },
} as const satisfies FlagTable

export type ConnectionFlags = FlagValues<typeof CONNECTION_FLAGS>

/** The flags of `tutti infer`. */
export const INFER_FLAGS = {
  input: REQUEST_FLAGS.input,
  shape: REQUEST_FLAGS.shape,
  output: {
    type: 'string',
    path: 'file',
    aliases: ['o'],
    repeatable: true,
    description:
      'NAME=FILE: write an output to a file, by its extension as .npy, .json, .png, or as bytes. In a stream the second response goes to FILE.2, before the extension. What cannot be written is an error, and the rest is written. Repeat the flag for more.',
  },
  url: URL_FLAG,
  'model-version': REQUEST_FLAGS['model-version'],
  ...CONNECTION_FLAGS,
  format: {
    ...FORMAT_FLAG,
    description: `${FORMAT_FLAG.description} Use --format; --output names files.`,
  },
} as const satisfies FlagTable

export type InferFlags = FlagValues<typeof INFER_FLAGS>
