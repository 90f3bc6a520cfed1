import { join } from 'node:path'
import {
  type Executable,
  obeyProxies,
  type ProcessEnvironment,
  runExecutable,
  systemClock,
} from '@tutti/chassis'
import type { CommandBody } from '@tutti/command-line/program'
import { checkConsoleFlags } from '@tutti/console'
import { checkPorts } from '@tutti/server'
import { checkTlsFlags, readHeaderRules } from '@tutti/serving'
import { checkModelFlags } from '@tutti/step'
import { readMetricsFlags, readTraceFlags, withTraceFlags } from '@tutti/telemetry'
import manifest from '../../package.json' with { type: 'json' }
import { cacheFolder } from './cache-folder.ts'
import { checkPythonFlags, choosePython } from './choose-python.ts'
import { checkControlFlags } from './control-flags.ts'
import { checkManifestFlags } from './manifest-flags.ts'
import { openManifests } from './open-manifests.ts'
import { startServe } from './serve.ts'
import { SERVE_FLAGS, type ServeFlags } from './serve-flags.ts'
import { readStorageMaps } from './storage-places.ts'
import { checkTritonFlags } from './triton-flags.ts'

const USAGE = 'tutti serve --model-repository DIR | -f FILE|DIR|- [FLAGS]'

/** @param environment - manifests may come from standard input, and why they are refused is for people. */
function serveExecutable(environment: ProcessEnvironment): Executable<typeof SERVE_FLAGS> {
  return {
    name: 'tutti',
    version: manifest.version,
    usage: USAGE,
    flags: SERVE_FLAGS,
    processFlags: (flags) => flags,
    check: checkServeFlags,
    start: async (given) => {
      obeyProxies(environment.env)
      const settings = withTraceFlags(given.settings, given.flags)
      const { log, statusLine, signal } = given
      const flags = settleDeprecated(given.flags)
      // Models may take minutes.
      const page = { address: flags['console-address'], port: flags['console-port'] }
      await checkPorts(flags, page)
      const closed = new AbortController()
      const backends = await choosePython(flags, {
        cache: cacheFolder(environment),
        path: environment.env['PATH'],
        clock: systemClock,
        log,
        statusLine,
        signal: AbortSignal.any([signal, closed.signal]),
      })
      const o = { ...given, settings, flags, backends, onClose: () => closed.abort() }
      if (flags.filename.length === 0) return await startServe(o)
      const manifests = await openManifests({
        flags,
        backends,
        input: environment.input,
        err: (text) => environment.err(text),
        cache: flags['model-cache'] ?? join(cacheFolder(environment), 'models'),
        env: environment.env,
        clock: systemClock,
        log,
        statusLine,
        signal,
      })
      return await startServe({ ...o, manifests })
    },
  }
}

/** Checks the flags of `tutti serve` before the start. @throws ServeError, FLAG_INVALID in most cases. */
export function checkServeFlags(flags: ServeFlags): void {
  checkModelFlags(flags, { hasOthers: flags.filename.length > 0 })
  checkControlFlags(flags)
  checkManifestFlags(flags)
  checkPythonFlags(flags)
  checkTlsFlags(flags)
  checkConsoleFlags(flags)
  checkTritonFlags(flags)
  readHeaderRules(flags)
  readTraceFlags(flags)
  readMetricsFlags(flags)
  readStorageMaps(flags)
}

/** Copies the value of the deprecated `--strict-model-config` to `--disable-auto-complete-config`. @returns the new flags. */
export function settleDeprecated(flags: ServeFlags): ServeFlags {
  const isStrict = flags['strict-model-config'] ?? flags['disable-auto-complete-config']
  return { ...flags, 'disable-auto-complete-config': isStrict }
}

export const serveCommand: CommandBody = {
  usage: USAGE,
  flags: SERVE_FLAGS,
  run: (argv, environment) => runExecutable(serveExecutable(environment), argv, environment),
}
