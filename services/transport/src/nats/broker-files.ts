import { readFileSync } from 'node:fs'
import { parseCertificates, parsePrivateKey } from '@tutti/chassis'
import { ServeError } from '@tutti/errors'
import type { BrokerOptions } from '../endpoints.ts'
import { type BrokerField, type BrokerNaming, SETTING_NAMES } from './broker-naming.ts'
import { isUserSeed, type SignInKeys } from './nats-keys.ts'

/** The contents of the files of the options. */
export interface BrokerFiles extends SignInKeys {
  readonly tls?: { readonly ca?: string; readonly cert?: string; readonly key?: string }
}

/**
 * Reads and checks the files: `node:tls` would skip a certificate that is none, and name no file.
 *
 * @throws ServeError that names the field and the file, and repeats none of its contents.
 */
export function readBrokerFiles(
  broker: BrokerOptions,
  naming: BrokerNaming = SETTING_NAMES,
): BrokerFiles {
  const { nkeyFile, credentialsFile } = broker
  const read = <T>(
    field: BrokerField,
    path: string | undefined,
    parse: (text: string) => T,
  ): T | undefined => (path === undefined ? undefined : parseFile({ field, path, parse, naming }))
  const nkeySeed = read('nkeyFile', nkeyFile, parseSeed)
  const credentials = read('credentialsFile', credentialsFile, parseCredentials)
  const { caFile, certFile, keyFile } = broker.tls ?? {}
  const ca = read('tls.caFile', caFile, parseCertificates)
  const cert = read('tls.certFile', certFile, parseCertificates)
  const key = read('tls.keyFile', keyFile, parsePrivateKey)
  if (cert !== undefined && key !== undefined && !cert.first.checkPrivateKey(key.object)) {
    const what = `"${keyFile}" is not the key of the certificate in "${certFile}"`
    throw naming.refusal('tls.keyFile', what)
  }
  return {
    ...(nkeySeed !== undefined && { nkeySeed }),
    ...(credentials !== undefined && { credentials }),
    ...(broker.tls !== undefined && {
      tls: {
        ...(ca !== undefined && { ca: ca.text }),
        ...(cert !== undefined && { cert: cert.text }),
        ...(key !== undefined && { key: key.text }),
      },
    }),
  }
}

function parseFile<T>(o: {
  readonly field: BrokerField
  readonly path: string
  readonly parse: (text: string) => T
  readonly naming: BrokerNaming
}): T {
  const { field, path, parse, naming } = o
  const text = readBrokerFile(field, path, naming)
  try {
    return parse(text)
  } catch (cause) {
    throw naming.refusal(field, `"${path}" ${ServeError.from(cause).message}`, cause)
  }
}

/** Reads the text of a file. @throws ServeError that names the field and the file. */
export function readBrokerFile(field: BrokerField, path: string, naming: BrokerNaming): string {
  try {
    return readFileSync(path, 'utf8')
  } catch (cause) {
    throw naming.refusal(
      field,
      `"${path}" cannot be read: ${ServeError.from(cause).message}`,
      cause,
    )
  }
}

function parseSeed(text: string): string {
  const seed = text.trim()
  if (!isUserSeed(seed)) throw new Error("holds no seed of a user's nkey, want SU...")
  return seed
}

/** A block of a credentials file: its name and the one line in it. */
const BLOCK = /-{3,} *BEGIN ([A-Z ]+?) *-{3,}\s+(\S+)\s+-{3,} *END \1 *-{3,}/g

function parseCredentials(text: string): { readonly jwt: string; readonly seed: string } {
  const blocks = new Map([...text.matchAll(BLOCK)].map(([, name, line]) => [name, line]))
  const jwt = blocks.get('NATS USER JWT')
  const seed = blocks.get('USER NKEY SEED')
  if (jwt === undefined || seed === undefined) {
    throw new Error('holds no credentials, want the blocks NATS USER JWT and USER NKEY SEED')
  }
  if (jwt.split('.').length !== 3) throw new Error('holds no JWT in the block NATS USER JWT')
  if (!isUserSeed(seed)) throw new Error('holds no seed SU... in the block USER NKEY SEED')
  return { jwt, seed }
}
