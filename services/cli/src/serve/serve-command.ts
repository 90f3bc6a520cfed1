import { type Executable, runExecutable } from '@tutti/chassis'
import { checkModelFlags } from '@tutti/step'
import type { Command } from '../commands.ts'
import { startServe } from './serve.ts'
import { SERVE_FLAGS } from './serve-flags.ts'

const serveExecutable: Executable<typeof SERVE_FLAGS> = {
  name: 'tutti',
  usage: 'tutti serve --model-repository DIR [FLAGS]',
  flags: SERVE_FLAGS,
  processFlags: (flags) => flags,
  check: checkModelFlags,
  start: startServe,
}

export const serveCommand: Command = {
  name: 'serve',
  description: 'Serves model repositories in one process.',
  run: (argv, around) => runExecutable(serveExecutable, argv, around),
}
