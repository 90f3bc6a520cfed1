import {
  createHealth,
  createLogger,
  type LogLevel,
  parseFlags,
  renderHelp,
  runUntilSignal,
} from '@tutti/chassis'
import { ServeError } from '@tutti/errors'
import type { Command } from '../commands.ts'
import { loadSettings } from '../settings.ts'
import { readBackendConfig } from './backend-config.ts'
import { type ServeFlags, startServe } from './serve.ts'
import { SERVE_FLAGS } from './serve-flags.ts'

export const serveCommand: Command = {
  name: 'serve',
  description: 'Serves model repositories in one process.',
  run: async (argv, around) => {
    const { values: flags, positionals, help } = parseFlags(SERVE_FLAGS, argv)
    if (help) {
      around.out(
        renderHelp({ usage: 'tutti serve --model-repository DIR [FLAGS]', flags: SERVE_FLAGS }),
      )
      return 0
    }
    if (positionals.length > 0) {
      throw new ServeError('FLAG_INVALID', `got '${positionals[0]}', want flags only`)
    }
    checkFlags(flags)
    const settings = loadSettings(around.env)
    const health = createHealth()
    const logger = createLogger({ level: toLevel(flags), name: 'tutti' })
    return await runUntilSignal({
      start: () => startServe({ flags, settings, log: logger }),
      health,
      logger,
      signals: around.signals,
      exit: (code) => around.exit(code),
      graceMs: flags['exit-timeout-secs'] * 1000,
    })
  },
}

/** What can be judged before anything starts: a command line that was not understood ends with its own exit code. */
function checkFlags(flags: ServeFlags): void {
  readBackendConfig(flags['backend-config'])
  if (flags['model-repository'].length > 0) return
  throw new ServeError('FLAG_INVALID', '--model-repository: got none, want at least one folder', {
    details: { field: '--model-repository' },
  })
}

function toLevel(flags: ServeFlags): LogLevel {
  if (flags['log-verbose'] > 0) return 'debug'
  if (flags['log-info']) return 'info'
  return flags['log-warning'] ? 'warn' : 'error'
}
