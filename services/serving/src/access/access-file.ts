import { type Clock, type FlagValues, followFiles, type Logger, readFiles } from '@tutti/chassis'
import { ServeError } from '@tutti/errors'
import type * as Yaml from 'yaml'
import { z } from 'zod'
import type { TlsFlagValues } from '../listeners/tls-flags.ts'
import type { ACCESS_FLAGS } from './access-flags.ts'
import type { IdentityRule } from './access-selector.ts'

const whole = () => z.int().min(1).max(1_000_000)

const QuotaFields = z
  .strictObject({
    requestsPerSecond: whole().optional(),
    burst: whole().optional(),
    concurrentRequests: whole().optional(),
  })
  .refine(
    ({ requestsPerSecond: rate, concurrentRequests: most }) =>
      rate !== undefined || most !== undefined,
    { error: 'want requestsPerSecond, concurrentRequests or both' },
  )
  .refine(({ requestsPerSecond: rate, burst }) => burst === undefined || rate !== undefined, {
    error: 'want it with requestsPerSecond only',
    path: ['burst'],
  })

const Identity = z
  .strictObject({
    name: z.string().regex(/^[A-Za-z0-9][-A-Za-z0-9_.]{0,62}$/, {
      error: 'want 1 to 63 letters, digits and -_., beginning with a letter or a digit',
    }),
    /** Digests of a bearer token each, so that one can be replaced by another while both count. */
    tokenSha256: z
      .array(z.string().regex(/^[0-9a-f]{64}$/, { error: 'want 64 hex digits in lower case' }))
      .max(16)
      .default([]),
    /** Names of certificates, spelled as readClientCertificate of ../tls does. */
    certificates: z
      .array(
        z.string().regex(/^(CN|DNS|URI|email|IP Address):.{1,1024}$/, {
          error: 'want CN:, DNS:, URI:, email: or IP Address: and a name',
        }),
      )
      .max(16)
      .default([]),
    models: z
      .array(z.string().min(1).max(256))
      .min(1)
      .max(1024)
      .refine((models) => models.length === 1 || !models.includes('*'), {
        error: 'want * alone, or names of models',
      }),
    control: z.boolean().default(false),
    quota: QuotaFields.optional(),
  })
  .refine(({ tokenSha256, certificates }) => tokenSha256.length + certificates.length > 0, {
    error: 'want tokenSha256, certificates or both',
  })

/** The rules that a person writes: who may call what. */
const AccessFileFields = z.strictObject({
  identities: z
    .array(Identity)
    .max(1000)
    .refine((all) => isUnique(all.map(({ name }) => name)), { error: 'want each name once' })
    .refine((all) => isUnique(all.flatMap(({ tokenSha256 }) => tokenSha256)), {
      error: 'want each digest once: a token tells one identity from the others',
    })
    .refine((all) => isUnique(all.flatMap(({ certificates }) => certificates)), {
      error: 'want each name of a certificate once: it tells one identity from the others',
    }),
})

function isUnique(values: readonly string[]): boolean {
  return new Set(values).size === values.length
}

export interface AccessFileOptions {
  readonly flags: FlagValues<typeof ACCESS_FLAGS> &
    Pick<TlsFlagValues, 'grpc-use-ssl-mutual' | 'http-use-ssl-mutual'>
  readonly clock: Clock
  readonly log: Logger
}

/** Options with what reads YAML. */
type ParsingOptions = AccessFileOptions & Pick<typeof Yaml, 'parse'>

/**
 * The rules of the access file: who may call which models. A changed file is read again; if that fails, the former rules stay.
 */
export class AccessFile {
  /** Function that stops watching the file. */
  readonly close: () => void
  #identities: readonly IdentityRule[]

  private constructor(path: string, texts: readonly string[], o: ParsingOptions) {
    const { clock, log, parse } = o
    const parseAll = (all: readonly string[]) =>
      refuseUnproven(path, parseAccess(path, all, parse), o)
    this.#identities = parseAll(texts)
    this.close = followFiles({
      ...filesOf(path),
      texts,
      take: (changed) => {
        this.#identities = parseAll(changed)
        log.info('access file changed', { identities: this.#identities.length })
      },
      failed: (error) => log.error('access file cannot be used, the rules before stay', { error }),
      clock,
    })
  }

  /**
   * Opens the file of `--access-file`; undefined without the flag.
   *
   * @throws ServeError FLAG_INVALID if it cannot be read, or does not fit.
   */
  static async open(o: AccessFileOptions): Promise<AccessFile | undefined> {
    const { 'access-file': path } = o.flags
    if (path === undefined) return undefined
    // Few servers have such a file.
    const { parse } = await import('yaml')
    return new AccessFile(path, await readFiles(filesOf(path)), { ...o, parse })
  }

  /** Function that returns the rules: the same list until the file has changed. */
  readonly identities = (): readonly IdentityRule[] => this.#identities
}

function filesOf(path: string) {
  const refuse = (_: string, cause: Error) => refused(path, 'it cannot be read', cause)
  return { paths: [path], refuse }
}

function parseAccess(
  path: string,
  [text = '']: readonly string[],
  parse: typeof Yaml.parse,
): readonly IdentityRule[] {
  let written: unknown
  try {
    // Without the lines around a fault, which may hold what was meant to be a digest.
    written = parse(text, { prettyErrors: false })
  } catch (cause) {
    throw refused(path, `it is no YAML: ${ServeError.from(cause).message}`, cause)
  }
  const read = AccessFileFields.safeParse(written)
  if (read.success) return read.data.identities
  throw refused(path, z.prettifyError(read.error), read.error)
}

/** Refuses certificates that no caller can prove, because no listener asks for one. */
function refuseUnproven(
  path: string,
  rules: readonly IdentityRule[],
  { flags }: AccessFileOptions,
): readonly IdentityRule[] {
  const isProven = flags['grpc-use-ssl-mutual'] || flags['http-use-ssl-mutual']
  const at = rules.findIndex(({ certificates }) => certificates.length > 0)
  if (isProven || at < 0) return rules
  const what = `identities[${at}].certificates: got it without mutual TLS, want it with --grpc-use-ssl-mutual or --http-use-ssl-mutual`
  throw refused(path, what, undefined)
}

function refused(path: string, what: string, cause: unknown): ServeError {
  const text = `--access-file: ${path}: ${what}`
  return new ServeError('FLAG_INVALID', text, { details: { field: '--access-file' }, cause })
}
