import { access, writeFile } from 'node:fs/promises'
import {
  createLogger,
  flagRefusal,
  type Logger,
  obeyProxies,
  type ProcessEnvironment,
  parseFlags,
  readResultFormat,
  renderHelp,
  renderJson,
  reportProblem,
  systemClock,
  TransferProgress,
  toLogSettings,
} from '@tutti/chassis'
import { type Reason, ServeError } from '@tutti/errors'
import {
  awsPodIdentity,
  type CloudIdentity,
  cloudBuckets,
  type FetchBounds,
  fetchArtifact,
  podCloudIdentity,
  readCredentials,
  showUri,
  verifyArtifact,
} from '@tutti/repository'
import { z } from 'zod'
import { FETCH_FLAGS, type FetchFlags } from './fetch-flags.ts'
import { serveProgress } from './serve-progress.ts'

/**
 * Exit codes of `fetch` by the reason of the failure, so that an operator can tell failures apart. All other failures are 1.
 * README.md has the same table.
 */
export const FETCH_EXIT_CODES = {
  FLAG_INVALID: 2,
  SETTING_INVALID: 3,
  ARTIFACT_NOT_FOUND: 10,
  ARTIFACT_DENIED: 11,
  ARTIFACT_UNAVAILABLE: 12,
  ARTIFACT_UNTRUSTED: 13,
  ARTIFACT_MISMATCH: 14,
  ARTIFACT_INVALID: 15,
  ARTIFACT_TOO_LARGE: 16,
  ARTIFACT_NOT_STORED: 17,
} as const satisfies Partial<Record<Reason, number>>

/** Result that `fetch` prints as JSON. */
export const FetchResult = z
  .object({
    uri: z.string().exactOptional().meta({
      description: 'Address of the model, without passwords; absent with --verify.',
    }),
    directory: z.string(),
    digest: z.string().meta({
      description: 'sha256:HEX: of the archive for http(s), else of the tree.',
    }),
    files: z.int(),
    bytes: z.int().meta({ description: 'Of all files.' }),
    isFetched: z.boolean().meta({ description: 'False if it was there already, or was checked.' }),
  })
  .meta({ title: 'Result of tutti fetch' })
type FetchResult = z.infer<typeof FetchResult>

/** First line of `--help`. */
export const FETCH_USAGE =
  'tutti fetch --uri URI --to DIR [FLAGS], or tutti fetch --verify DIR --digest DIGEST'
/** Most bytes that Kubernetes reads of a termination log. */
const MAX_MESSAGE_BYTES = 4096

/**
 * Fetches a model, or verifies one: `tutti-step fetch` and `tutti fetch`.
 *
 * @param program - name that a message begins with.
 * @param clouds - identities for buckets of Google and Azure.
 * @returns the exit code. The message of a failure is on stderr and in the termination log.
 */
export async function runFetch(
  program: string,
  argv: readonly string[],
  environment: ProcessEnvironment,
  clouds: CloudIdentity = podCloudIdentity(),
): Promise<number> {
  let terminationLog: string = FETCH_FLAGS['termination-log'].default
  try {
    const { values: flags, positionals, help } = parseFlags(FETCH_FLAGS, argv)
    terminationLog = flags['termination-log']
    if (help) {
      environment.out(renderHelp({ usage: FETCH_USAGE, flags: FETCH_FLAGS }))
      return 0
    }
    if (positionals[0] !== undefined)
      throw new ServeError('FLAG_INVALID', `got '${positionals[0]}', want flags only`)
    obeyProxies(environment.env)
    const result = await fetchOrVerify(flags, environment, clouds)
    if (flags.format === 'json') environment.out(renderJson(result))
    else if (flags['print-digest']) environment.out(`${result.digest}\n`)
    return 0
  } catch (error) {
    const { reason, code, message } = ServeError.from(error)
    const line = message.replaceAll(/\s*\n\s*/g, '; ')
    const output = { ...environment, errorFormat: readResultFormat(FETCH_FLAGS, argv) }
    reportProblem(program, new ServeError(reason, line, { code }), output)
    await noteEnd(terminationLog, `${program}: ${line}`)
    const codes: Partial<Record<Reason, number>> = FETCH_EXIT_CODES
    return codes[reason] ?? 1
  }
}

async function fetchOrVerify(
  flags: FetchFlags,
  environment: ProcessEnvironment,
  clouds: CloudIdentity,
): Promise<FetchResult> {
  const { uri, to, verify, digest } = flags
  // The result is alone on stdout, so that a shell can take it.
  const hasResult = flags['print-digest'] || flags.format === 'json'
  const write = (line: string) => (hasResult ? environment.err(line) : environment.out(line))
  const log = createLogger({
    settings: toLogSettings(flags),
    name: 'fetch',
    destination: { write },
  })
  const bounds: FetchBounds = {
    maxBytes: flags['max-bytes'],
    maxFiles: flags['max-files'],
    attempts: flags.attempts,
    stallMs: flags['stall-timeout-secs'] * 1000,
  }
  if (verify === undefined) {
    if (uri === undefined)
      throw flagRefusal('--uri', 'got none, want what to fetch, or --verify=DIR')
    if (to === undefined) throw flagRefusal('--to', "got none, want the model's folder")
    const credentials = await readCredentials(flags['secret-dir'], environment.env)
    const identity = awsPodIdentity(environment.env)
    const progressPort = flags['progress-port']
    const cache = readCache(flags)
    const openBucket = cloudBuckets({ env: environment.env, identity: clouds })
    const request = {
      uri,
      to,
      digest,
      credentials,
      identity,
      bounds,
      cache,
      log,
      progressPort,
      openBucket,
    }
    return await fetchTo(request, environment)
  }
  requireAlone(flags)
  if (digest === undefined && !hasResult) {
    throw flagRefusal('--digest', 'got none, want sha256:HEX, --print-digest or --format json')
  }
  const found = await verifyArtifact(verify, { digest, bounds })
  log.info('model verified', { directory: verify, ...found })
  return { directory: verify, ...found, isFetched: false }
}

/** @throws ServeError FLAG_INVALID for a size without a folder. */
function readCache(flags: FetchFlags): Parameters<typeof fetchArtifact>[0]['cache'] {
  const { cache: directory, 'cache-max-bytes': maxBytes } = flags
  if (directory !== undefined) return { directory, maxBytes }
  if (maxBytes === FETCH_FLAGS['cache-max-bytes'].default) return undefined
  throw flagRefusal('--cache', 'got none, want the folder, with --cache-max-bytes')
}

/** Refuses flags of a fetch beside --verify, which fetches nothing. @throws ServeError FLAG_INVALID */
function requireAlone(flags: FetchFlags): void {
  const names = ['uri', 'to', 'secret-dir', 'cache', 'cache-max-bytes', 'progress-port'] as const
  const found = names.find((name) => {
    const flag = FETCH_FLAGS[name]
    return flags[name] !== ('default' in flag ? flag.default : undefined)
  })
  if (found !== undefined) {
    throw flagRefusal('--verify', `got --${found} beside it, want none, as it fetches nothing`)
  }
}

async function fetchTo(
  o: Omit<Parameters<typeof fetchArtifact>[0], 'signal'> & {
    readonly log: Logger
    readonly progressPort: number
  },
  environment: ProcessEnvironment,
): Promise<FetchResult> {
  const { statusLine } = environment
  const progress = new TransferProgress({ statusLine, log: o.log, clock: systemClock })
  const openTransfer = (uri: string) => progress.open(uri)
  const endProgress = await serveProgress(o.progressPort, { progress, log: o.log })
  const stop = new AbortController()
  const unlisten = environment.signals.listen((signal) => {
    stop.abort(new ServeError('CANCELLED', `stopped by ${signal}`))
  })
  try {
    const { isFetched, ...found } = await fetchArtifact({ ...o, openTransfer, signal: stop.signal })
    const message = isFetched ? 'model fetched' : 'model was there already'
    const result = { uri: showUri(o.uri), directory: o.to, ...found }
    o.log.info(message, result)
    return { ...result, isFetched }
  } finally {
    unlisten()
    endProgress()
  }
}

/** Writes the end into a file that is there: without one, no kubelet reads it. */
async function noteEnd(path: string, message: string): Promise<void> {
  try {
    await access(path)
    await writeFile(path, Buffer.from(message).subarray(0, MAX_MESSAGE_BYTES))
  } catch {
    // stderr has the message too.
  }
}
