import {
  type Executable,
  type FlagTable,
  type FlagValues,
  flagRefusal,
  type ProcessEnvironment,
  runExecutable,
} from '@tutti/chassis'
import type { CommandBody } from '@tutti/command-line/program'
import { ROUTER_FLAGS, routerExecutable, startRouter } from '@tutti/router'
import { readEnsembleManifests } from './ensemble-manifests.ts'

const FLAGS = {
  filename: {
    type: 'string',
    path: 'file',
    aliases: ['f'],
    repeatable: true,
    description:
      'File or folder of manifests, or - for standard input. The router serves their Ensembles; steps serve the Models. Repeat the flag for more. Only tutti router.',
  },
  ...ROUTER_FLAGS,
} as const satisfies FlagTable

type Flags = FlagValues<typeof FLAGS>

/** The program of the router, which here serves the Ensembles of manifests too. */
export const routerCommand: CommandBody = {
  usage: 'tutti router [-f FILE|DIR|- | --model-repository DIR | --kubernetes] --nats URL [FLAGS]',
  flags: FLAGS,
  run: async (argv, environment) =>
    await runExecutable(withManifests(environment), argv, environment),
}

function withManifests(environment: ProcessEnvironment): Executable<typeof FLAGS> {
  return {
    ...routerExecutable,
    usage: routerCommand.usage,
    flags: FLAGS,
    processFlags: (flags) => flags,
    check: (flags) => {
      routerExecutable.check(flags)
      checkFilename(flags)
    },
    start: async (o) => {
      const { input } = environment
      const err = (text: string): void => environment.err(text)
      const ensembles = await readEnsembleManifests({ flags: o.flags, input, err })
      return await startRouter({ ...o, ensembles })
    },
  }
}

/** @throws ServeError FLAG_INVALID if something else says which ensembles there are, and changes it. */
function checkFilename(flags: Flags): void {
  if (flags.filename.length === 0) return
  if (flags.kubernetes) {
    throw flagRefusal('--filename', 'got it with --kubernetes, where the operator reads manifests')
  }
  if (flags['model-control-mode'] === 'none') return
  const got = `got it with --model-control-mode=${flags['model-control-mode']}`
  throw flagRefusal('--filename', `${got}, want none: manifests are read once, at the start`)
}
