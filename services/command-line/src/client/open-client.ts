import type { ProcessEnvironment } from '@tutti/chassis'
import { ServeError } from '@tutti/errors'
import { openGrpcClient } from './grpc-client.ts'
import { type AccessFlags, type ConnectionFlags, LOOK_UP_SECS } from './infer-flags.ts'
import { type ModelClient, parseServerUrl } from './model-client.ts'
import { readBounded } from './read-bounded.ts'
import { openRestClient } from './rest-client.ts'

/**
 * Opens a client of a server. The caller closes the client.
 *
 * @param o.headers - headers of each call, beside those of the flags.
 * @param o.timeoutMs - limit of each call, in place of `--timeout-secs`.
 * @throws ServeError FLAG_INVALID for an invalid address, or a file that cannot be read.
 */
export async function openClient(
  flags: Partial<ConnectionFlags> & { readonly url: string },
  environment: ProcessEnvironment,
  o: { readonly headers?: Readonly<Record<string, string>>; readonly timeoutMs?: number } = {},
): Promise<ModelClient> {
  const url = parseServerUrl(flags.url)
  const timeoutMs = o.timeoutMs ?? (flags['timeout-secs'] && flags['timeout-secs'] * 1000)
  const open = url.protocol.startsWith('grpc') ? openGrpcClient : openRestClient
  const access = await readAccess(flags, environment)
  return open({
    url,
    ...access,
    headers: { ...access.headers, ...o.headers },
    lookUpMs: timeoutMs ?? LOOK_UP_SECS * 1000,
    ...(timeoutMs !== undefined && { timeoutMs }),
  })
}

/** Most bytes of a certificate, key or token. */
const MOST_TEXT_BYTES = 2 ** 20

/** @throws ServeError FLAG_INVALID that names the flag and the file. */
function readGiven(flag: string, file: string): Promise<Buffer> {
  return namingFile(flag, file, () => readBounded(file, MOST_TEXT_BYTES))
}

/**
 * Reads a file of a flag, and names both in errors.
 *
 * @param file - the file as the user wrote it, for the message.
 * @throws ServeError FLAG_INVALID that names the flag and the file.
 */
export async function namingFile<T>(
  flag: string,
  file: string,
  read: () => Promise<T>,
): Promise<T> {
  try {
    return await read()
  } catch (cause) {
    const { message } = ServeError.from(cause)
    throw new ServeError('FLAG_INVALID', `--${flag} ${file}: it cannot be read: ${message}`, {
      details: { field: flag },
      cause,
    })
  }
}

/** Reads a client's certificates and token from the files of the flags, and from TUTTI_TOKEN. @throws ServeError FLAG_INVALID */
export async function readAccess(flags: Partial<AccessFlags>, environment: ProcessEnvironment) {
  return { tls: await readTls(flags), headers: await readToken(flags, environment) }
}

async function readTls(flags: Partial<AccessFlags>) {
  const read = async (flag: 'tls-ca' | 'tls-cert' | 'tls-key') => {
    const file = flags[flag]
    return file === undefined ? undefined : (await readGiven(flag, file)).toString('utf8')
  }
  const [ca, cert, key] = await Promise.all([read('tls-ca'), read('tls-cert'), read('tls-key')])
  if ((cert === undefined) !== (key === undefined)) {
    throw new ServeError('FLAG_INVALID', '--tls-cert and --tls-key: got one, want both or none')
  }
  return {
    ...(ca !== undefined && { ca }),
    ...(cert !== undefined && { cert }),
    ...(key !== undefined && { key }),
  }
}

async function readToken(
  flags: Partial<AccessFlags>,
  { env }: ProcessEnvironment,
): Promise<Readonly<Record<string, string>>> {
  const file = flags['token-file']
  const token =
    file === undefined ? env['TUTTI_TOKEN'] : (await readGiven('token-file', file)).toString('utf8')
  const trimmed = token?.trim() ?? ''
  if (trimmed === '') return {}
  // A header cannot hold these characters; the error of the client would show the token.
  if (/[^\x21-\x7e]/.test(trimmed)) {
    const source = file === undefined ? 'TUTTI_TOKEN' : `--token-file ${file}`
    throw new ServeError(
      'FLAG_INVALID',
      `${source}: got a space, a line break or a character beyond ASCII, want one token`,
    )
  }
  return { authorization: `Bearer ${trimmed}` }
}
