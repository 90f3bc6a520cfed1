import { access, writeFile } from 'node:fs/promises'
import {
  createLogger,
  type Logger,
  type ProcessEnvironment,
  parseFlags,
  renderHelp,
  toLogLevel,
} from '@tutti/chassis'
import { ServeError } from '@tutti/errors'
import {
  type FetchBounds,
  type FetchCredentials,
  fetchArtifact,
  readCredentials,
  showUri,
  verifyArtifact,
} from '@tutti/repository'
import { toExitCode } from './exit-codes.ts'
import { FETCH_FLAGS, type FetchFlags } from './fetch-flags.ts'

const USAGE = 'tutti fetch --uri URI --to DIR [FLAGS], or tutti fetch --verify DIR --digest DIGEST'
/** Kubernetes reads no more of a termination log. */
const MAX_MESSAGE_BYTES = 4096

/**
 * Fetches a model, or checks one: `tutti-step fetch` and `tutti fetch`.
 *
 * @param program - what a message begins with.
 * @returns the exit code; the message of a failure is on stderr and in the termination log.
 */
export async function runFetch(
  program: string,
  argv: readonly string[],
  around: ProcessEnvironment,
): Promise<number> {
  let terminationLog: string = FETCH_FLAGS['termination-log'].default
  try {
    const { values: flags, positionals, help } = parseFlags(FETCH_FLAGS, argv)
    terminationLog = flags['termination-log']
    if (help) {
      around.out(renderHelp({ usage: USAGE, flags: FETCH_FLAGS }))
      return 0
    }
    if (positionals[0] !== undefined) throw refusal(`got '${positionals[0]}', want flags only`)
    const digest = await fetchOrVerify(flags, around)
    if (flags['print-digest']) around.out(`${digest}\n`)
    return 0
  } catch (error) {
    const message = `${program}: ${ServeError.from(error).message.replaceAll(/\s*\n\s*/g, '; ')}`
    around.err(`${message}\n`)
    await noteEnd(terminationLog, message)
    return toExitCode(error)
  }
}

async function fetchOrVerify(flags: FetchFlags, around: ProcessEnvironment): Promise<string> {
  const { uri, to, verify, digest } = flags
  // With --print-digest alone on stdout, so that a shell can take it.
  const isOutTaken = flags['print-digest']
  const destination = {
    write: (line: string) => (isOutTaken ? around.err(line) : around.out(line)),
  }
  const log = createLogger({ level: toLogLevel(flags), name: 'fetch', destination })
  const bounds = toBounds(flags)
  if (verify !== undefined) {
    if (uri !== undefined || to !== undefined || flags['secret-dir'] !== undefined) {
      throw refusal('--verify: got --uri, --to or --secret-dir beside it, want none of them')
    }
    if (digest === undefined && !flags['print-digest']) {
      throw refusal('--digest: got none, want sha256:HEX or --print-digest')
    }
    const found = await verifyArtifact(verify, { digest, bounds })
    log.info('model verified', { directory: verify, ...found })
    return found.digest
  }
  if (uri === undefined) throw refusal('--uri: got none, want what to fetch, or --verify=DIR')
  if (to === undefined) throw refusal('--to: got none, want the model’s directory')
  return await fetchTo({ uri, to, digest, secretDir: flags['secret-dir'], bounds, log, around })
}

async function fetchTo(o: {
  readonly uri: string
  readonly to: string
  readonly digest: string | undefined
  readonly secretDir: string | undefined
  readonly bounds: FetchBounds
  readonly log: Logger
  readonly around: ProcessEnvironment
}): Promise<string> {
  const { uri, to, digest, bounds, log } = o
  const stop = new AbortController()
  const unlisten = o.around.signals.listen((signal) => {
    stop.abort(new ServeError('CANCELLED', `stopped by ${signal}`))
  })
  try {
    const credentials: FetchCredentials =
      o.secretDir === undefined ? {} : await readCredentials(o.secretDir)
    const { signal } = stop
    const found = await fetchArtifact({ uri, to, digest, credentials, bounds, signal, log })
    const { isFetched, ...what } = found
    const message = isFetched ? 'model fetched' : 'model was there already'
    log.info(message, { uri: showUri(uri), directory: to, ...what })
    return found.digest
  } finally {
    unlisten()
  }
}

function toBounds(flags: FetchFlags): FetchBounds {
  return {
    maxBytes: flags['max-bytes'],
    maxFiles: flags['max-files'],
    attempts: flags.attempts,
    stallMs: flags['stall-timeout-secs'] * 1000,
  }
}

/** Only into a file that is there: without one, no kubelet reads it. */
async function noteEnd(path: string, message: string): Promise<void> {
  try {
    await access(path)
    await writeFile(path, Buffer.from(message).subarray(0, MAX_MESSAGE_BYTES))
  } catch {
    // stderr has the message too.
  }
}

function refusal(text: string): ServeError {
  const [field] = /^--[a-z-]+/.exec(text) ?? []
  return new ServeError('FLAG_INVALID', text, {
    ...(field !== undefined && { details: { field } }),
  })
}
