import { constants, type X509Certificate } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { createSecureContext, type TlsOptions } from 'node:tls'
import {
  type Clock,
  type FollowedFiles,
  flagRefusal,
  parseCertificates,
  parsePrivateKey,
  systemClock,
} from '@tutti/chassis'
import { ServeError } from '@tutti/errors'
import { type TlsFiles, type TlsFlagValues, toTlsFiles } from './tls-flags.ts'

/** The files and the options with which a server over TLS is made. */
export interface SecureOptions {
  readonly files: TlsFiles
  /** Texts of the files. */
  readonly texts: readonly string[]
  readonly options: TlsOptions
  /** Time at which the server's certificate expires. */
  readonly validTo: Date
}

type FileFlag = 'server-cert' | 'server-key' | 'root-cert'

/**
 * Checks the flags of all listeners and what is in their files.
 *
 * @throws ServeError FLAG_INVALID that names the flag.
 */
export function checkTlsFlags(flags: TlsFlagValues): void {
  for (const listener of ['grpc', 'http', 'metrics'] as const) {
    readSecureOptions(toTlsFiles(flags, listener), systemClock)
  }
}

/** Reads and checks the files; undefined for a listener without TLS. @throws ServeError FLAG_INVALID */
export function readSecureOptions(
  files: TlsFiles | undefined,
  clock: Clock,
): SecureOptions | undefined {
  if (files === undefined) return undefined
  const { paths, refuse } = followedFiles(files)
  const texts = paths.map((path) => {
    try {
      return readFileSync(path, 'utf8')
    } catch (cause) {
      throw refuse(path, ServeError.from(cause))
    }
  })
  return toSecureOptions(files, texts, clock)
}

/** Lists the files that `followFiles` watches: certificate, key and, if there is one, root. */
export function followedFiles(files: TlsFiles): FollowedFiles {
  const { cert, key, root } = files
  const refuse = (path: string, cause: Error): ServeError => {
    const flag = path === cert ? 'server-cert' : path === key ? 'server-key' : 'root-cert'
    return refusal(files, flag, `"${path}" cannot be read: ${cause.message}`, cause)
  }
  return { paths: [cert, key, ...(root === undefined ? [] : [root])], refuse }
}

/**
 * Checks the texts of the files, and makes the options of TLS from them.
 *
 * @param texts - of certificate, key and root, in this order; the root may be absent.
 * @throws ServeError FLAG_INVALID for what is not valid at this time, does not fit together, or OpenSSL refuses.
 */
export function toSecureOptions(
  files: TlsFiles,
  texts: readonly string[],
  clock: Clock,
): SecureOptions {
  const [certText = '', keyText = '', rootText] = texts
  const parse = <T>(flag: FileFlag, path: string, read: () => T): T => {
    try {
      return read()
    } catch (cause) {
      throw refusal(files, flag, `"${path}" ${ServeError.from(cause).message}`, cause)
    }
  }
  const { cert: certFile, key: keyFile, root: rootFile = '' } = files
  const { text: cert, first } = parse('server-cert', certFile, () => parseCertificates(certText))
  const key = parse('server-key', keyFile, () => parsePrivateKey(keyText))
  if (!first.checkPrivateKey(key.object)) {
    const problem = `"${keyFile}" is not the key of the certificate in "${certFile}"`
    throw refusal(files, 'server-key', problem)
  }
  checkTimes(files, first, clock.epochMs())
  const ca =
    rootText === undefined
      ? undefined
      : parse('root-cert', rootFile, () => parseCertificates(rootText).text)
  const options: TlsOptions = {
    cert,
    key: key.text,
    minVersion: 'TLSv1.2',
    ...(ca !== undefined && {
      ca,
      requestCert: true,
      rejectUnauthorized: true,
      // A resumed session does not check the client's certificate, which may have expired since. Node keeps no sessions itself.
      secureOptions: constants.SSL_OP_NO_TICKET,
    }),
  }
  parse('server-cert', certFile, () => createSecureContext(options))
  return { files, texts, options, validTo: first.validToDate }
}

function checkTimes(
  files: TlsFiles,
  { validFromDate, validToDate }: X509Certificate,
  now: number,
): void {
  const problem =
    now > validToDate.getTime()
      ? `has expired at ${validToDate.toISOString()}`
      : now < validFromDate.getTime()
        ? `is not valid before ${validFromDate.toISOString()}`
        : undefined
  if (problem === undefined) return
  throw refusal(files, 'server-cert', `the certificate in "${files.cert}" ${problem}`)
}

function refusal({ listener }: TlsFiles, flag: FileFlag, problem: string, cause?: unknown) {
  return flagRefusal(`--${listener}-${flag}`, problem, cause)
}
